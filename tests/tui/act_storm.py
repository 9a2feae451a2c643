"""An operator acts at random on a board that a fleet changes at random; each step is checked.

    python -m tests.tui.act_storm                   the full form: 400,000 steps, a few minutes
    python -m tests.tui.act_storm --seed 7          another storm
    python -m tests.tui.act_storm --rounds 50       a shorter one

The operator looks, judges, acts and undoes through the dashboard's layer below its dialogs.
The fleet acts between the look and the act, between two checks of a plan, and just before each
rename: it claims, beats, ends, reaps, lets time pass, and a second operator acts. One act in
seven is killed at a random call. After each act the reported outcomes, the journal and the
renamed names must agree, and every renamed name must be one that the operator saw. A killed act
is recognised by its intent without an outcome. An undo restores exactly the name that it
showed, or moves nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event

import dibs
from dibs.model.events import INTENT, LEDGER, NOTHING_MOVED
from dibs.model.names import read_any
from dibs_tui.acting.execute import Outcome, execute, judge_all
from dibs_tui.acting.plan import ACTS, Act, ActPlan, Item, Target, fitting, priority_after
from tests.core.tools import Place, opened
from tests.tui.act_crew import LOCK, TASKS, Fleet, Killed, Step

VERBS = {act: "prioritize" if act in ("raise", "lower") else act for act in ACTS}
ACTING = ("force-release", "reap", "requeue", "park", "raise", "lower")


class Fault(AssertionError):
    """A broken promise."""


class Storm:
    """One round on its own board."""

    def __init__(self, scratch: Path, seed: int) -> None:
        self.figures: Counter[str] = Counter()
        self._chance = Random(seed)
        self._place = Place(scratch, ttl=10, plain_ttl=10, max_attempts=4)
        self._fleet = Fleet(self._place, self._chance)
        self._read: dibs.Cursor | None = None
        self._events: list[dibs.Event] = []
        self._shown: list[Target] = []
        self._takes: dict[str, int] = {}
        self._crashed: set[tuple[str, str]] = set()
        self._begin()

    def _begin(self) -> None:
        """Start a new process of the operator."""
        self._disk = self._fleet.disk("desk")
        self._disk.overtake = self._overtake
        self._board = opened(self._disk)

    def run(self, steps: int) -> Counter[str]:
        """Run this many steps, check the final state, and return the figures."""
        steps_of = (self._fleet.drift, self._look, self._act, self._undo)
        for _ in range(steps):
            self._chance.choices(steps_of, (6, 2, 4, 1))[0]()
        self._check_end()
        self.figures["steps"] += steps
        self.figures["renames"] += len(self._fleet.trail)
        return self.figures

    def _overtake(self) -> None:
        if self._chance.random() < 0.4:
            self._fleet.move()

    def _drift(self, most: int) -> None:
        for _ in range(self._chance.randint(0, most)):
            self._fleet.drift()

    # What the operator does

    def _look(self) -> None:
        board = self._board
        snapshot = board.snapshot()
        rows = {row.claim: row for row in board.entries(snapshot)}
        self._shown, self._takes = [], {}
        for task in snapshot.tasks.values():
            holder = snapshot.holders.get(task.name)
            name = holder.act_name if holder is not None and task.is_shell_claim else task.name
            row = rows.get(name) or rows[task.stem if task.live else task.name]
            self._shown.append(Target(task, name, row.state, row.owner, row.age))
            self._takes[name] = self._fleet.takes.get(task.name, 0)

    def _act(self) -> None:
        chance = self._chance
        act = ACTS[chance.choice(ACTING)]
        targets = fitting(act, self._shown)
        if not targets:
            return
        targets = tuple(chance.sample(targets, min(len(targets), chance.randint(1, 4))))
        items: list[Item] = []
        for item in judge_all(self._board, targets):
            items.append(item)
            self._drift(1)
        chosen = ActPlan(act, tuple(items)).chosen(doubtful=chance.random() < 0.7)
        self._drift(2)
        keep = act.id == "requeue" and chance.random() < 0.5
        by, outcomes = self._new("acts"), list[Outcome]()
        with self._killable(0.15, 25 * len(chosen)) as killed, self._as(by) as steps:
            execute(
                lambda: self._board,
                act,
                chosen,
                "storm",
                by,
                Event(),
                outcomes.append,
                keep_attempts=keep,
            )
        self._check(act, chosen, outcomes, steps, by, bool(killed))

    def _undo(self) -> None:
        chance, board = self._chance, self._board
        try:
            shown = board.undoable(chance.choice((None, *TASKS)))
        except dibs.Changed:
            self.figures["not undoable"] += 1
            return
        if shown is None:
            return
        self._drift(9)
        by = self._new("undos")
        task = None
        with self._as(by) as steps:
            try:
                task = board.undo(shown, by=by)
                self.figures["undone"] += 1
            except dibs.DibsError:
                self.figures["not undone"] += 1
        moved = [(step.src, step.dst) for step in steps]
        wanted = [(shown.dst, shown.src)] if task is not None else []
        if moved != wanted or (task is not None and task.name != shown.src):
            raise Fault(f"{by}: the undo of {shown} moved {moved}")
        if [(e.verb, e.src, e.dst) for e in self._moves_of(by)] != [("undo", *m) for m in wanted]:
            raise Fault(f"{by}: the journal has another undo than {wanted}")

    def _new(self, what: str) -> str:
        self.figures[what] += 1
        return f"desk-{what}-{self.figures[what]}"

    @contextmanager
    def _as(self, by: str) -> Iterator[list[Step]]:
        """The renames of this act, complete once the block has ended."""
        self._disk.who, begun, steps = by, len(self._fleet.trail), list[Step]()
        try:
            yield steps
        finally:
            steps += [step for step in self._fleet.trail[begun:] if step.who == by]

    @contextmanager
    def _killable(self, likely: float, calls: int) -> Iterator[list[bool]]:
        """Perhaps kill the operator's process at one of its calls, and start another one."""
        killed: list[bool] = []
        if calls and self._chance.random() < likely:
            self._disk.left = self._chance.randint(1, calls)
        try:
            yield killed
        except Killed:
            killed.append(True)
            self.figures["killed"] += 1
        if killed:
            self._begin()
        self._disk.left = -1

    # Checks

    def _check(
        self,
        act: Act,
        chosen: Iterable[Item],
        outcomes: list[Outcome],
        steps: list[Step],
        by: str,
        killed: bool,
    ) -> None:
        items = {item.target.task.name: item for item in chosen}
        self._check_only_shown(items, steps, by)
        moves = {event.src: event for event in self._moves_of(by)}
        news = [event for event in self._news() if event.by == by]
        intents = {event.src for event in news if event.verb == INTENT}
        answered = {event.src for event in news if event.verb != INTENT}
        landed = {step.src for step in steps} & items.keys()
        for outcome in outcomes:
            self.figures[outcome.word] += 1
            self._check_outcome(act, outcome, moves, landed, by)
        if not killed:
            self._check_ledger(outcomes, by)
        reported = {outcome.target.task.name for outcome in outcomes}
        if not intents <= items.keys():
            raise Fault(f"{by}: {intents - items.keys()} was intended and had not been shown")
        if not landed <= intents:
            raise Fault(f"{by}: {landed - intents} was moved without an intent")
        if not killed and reported != items.keys():
            raise Fault(f"{by}: no outcome of {items.keys() - reported}")
        unreported = landed - moves.keys() - reported
        if len(unreported) > 1 or (unreported and not killed):
            raise Fault(f"{by}: {unreported} was moved, and the journal does not say so")
        for step in steps:
            if step.src in unreported:
                self.figures["crashed after the rename"] += 1
                self._crashed.add((step.src, step.dst))
        for name in intents - answered:
            self.figures["intents alone"] += 1
            task = items[name].target.task
            alone = [e for e in self._board.log.of(task.id) if e.by == by and e.verb == INTENT]
            if [e.src for e in alone] != [name]:
                raise Fault(f"{by}: the history of {task.id} does not show the crash: {alone}")

    def _check_ledger(self, outcomes: list[Outcome], by: str) -> None:
        """An act on many leaves one line that counts its outcomes and names what was not done."""
        lines = [event.reason for event in self._news() if (event.by, event.verb) == (by, LEDGER)]
        if len(lines) != (len(outcomes) > 1):
            raise Fault(f"{by}: {len(outcomes)} outcomes, and these ledgers: {lines}")
        for word, count in Counter(outcome.word for outcome in outcomes).items():
            if lines and f"{count} {word}" not in lines[0]:
                raise Fault(f"{by}: {count} {word}, and this ledger: {lines[0]}")
        for outcome in outcomes:
            listed = bool(lines) and f"{outcome.target.name} ({outcome.word})" in lines[0]
            if lines and listed == (outcome.word == "done"):
                raise Fault(f"{by}: {outcome}, and this ledger: {lines[0]}")

    def _check_only_shown(self, items: dict[str, Item], steps: list[Step], by: str) -> None:
        """Check that each rename is of a name that was shown or that this act has just made."""
        begun: set[str] = set()
        for step in steps:
            if step.src not in items and step.src not in begun:
                raise Fault(f"{by}: {step.src} was moved and had not been shown")
            if step.src in items:
                task = items[step.src].target
                if task.task.is_shell_claim and self._takes[task.name] != step.take:
                    raise Fault(f"{by}: {step.src} was moved, and is another claim by now")
            begun.add(step.dst)

    def _parked_alike(self, outcome: Outcome) -> bool:
        """Whether another reaper parked it at the limit of attempts, under the same name."""
        renames = [(step.src, step.dst) for step in self._fleet.trail]
        parked = outcome.made.startswith("failed/")
        return parked and (outcome.target.task.name, outcome.made) in renames

    def _check_outcome(
        self, act: Act, outcome: Outcome, moves: dict[str, dibs.Event], landed: set[str], by: str
    ) -> None:
        task = outcome.target.task
        event = moves.get(task.name)
        if outcome.word != "done":
            if event is not None or (task.name in landed and not task.is_shell_claim):
                raise Fault(f"{by}: {outcome} was reported, and yet it was done: {event}")
            return
        if act.id in ("raise", "lower") and priority_after(act, task) == task.priority:
            return
        if event is None and task.name not in landed and self._parked_alike(outcome):
            return
        verbs = (VERBS[act.id], "park") if task.is_takeover else (VERBS[act.id],)
        if event is None or event.verb not in verbs or not self._was_moved(event, landed):
            raise Fault(f"{by}: {outcome} was reported, and the journal has {event}")
        after = [step.src for step in self._fleet.trail]
        if event.dst not in after and not (self._place.path / event.dst).exists():
            raise Fault(f"{by}: {event.dst} was reported, and does not exist")

    def _was_moved(self, event: dibs.Event, landed: set[str]) -> bool:
        """Whether this act moved it, or its holder made the same move at the limit of attempts."""
        same = event.dst.startswith("failed/") and event.verb == "reap"
        return event.src in landed or (same and self._same_effect(event.src, event.dst))

    def _same_effect(self, src: str, dst: str) -> bool:
        return any((step.src, step.dst) == (src, dst) for step in self._fleet.trail)

    def _moves_of(self, by: str) -> list[dibs.Event]:
        """The moves of this act in the journal."""
        return [e for e in self._news() if e.by == by and e.src and e.verb not in NOTHING_MOVED]

    def _news(self) -> list[dibs.Event]:
        events, self._read = self._board.log.since(self._read)
        self._events += events
        return self._events[-400:]

    def _check_end(self) -> None:
        """Check that each task is there once, complete, where its last rename put it."""
        self._news()
        names = self._place.names()
        for ident in TASKS:
            found = [name for name in names if (t := read_any(name)) is not None and t.id == ident]
            last = [s.dst for s in self._fleet.trail if _id(s.dst) == ident][-1:]
            if len(found) != 1 or (last and found != last):
                raise Fault(f"{ident} is {found}, and was moved last to {last}")
            if (self._place.path / found[0]).read_bytes() != ident.encode():
                raise Fault(f"{found[0]} is not what was added")
        own = (*TASKS, LOCK)
        steps = Counter((s.src, s.dst) for s in self._fleet.trail if _id(s.src) in own)
        lines = Counter(
            (e.src, e.dst)
            for e in self._events
            if e.id in own and e.verb not in NOTHING_MOVED and e.src and e.dst
        )
        unreported, unmoved = steps - lines, lines - steps
        twice = all(d.startswith("failed/") and self._same_effect(s, d) for s, d in unmoved)
        crashed = Counter(self._crashed & steps.keys())
        # Who wanted the same park finds it done, and reports it for the one that crashed.
        by_another = all(dst.startswith("failed/") for _, dst in crashed - unreported)
        if unreported - crashed or not by_another or not twice:
            raise Fault(f"only moved: {unreported}, crashed: {crashed}, only reported: {unmoved}")


def _id(name: str) -> str:
    task = read_any(name)
    return task.id if task is not None else ""


def storm(rounds: int, seed: int, steps: int = 400) -> Counter[str]:
    """Run this many rounds; a broken promise raises `Fault` with the seed that repeats it."""
    figures: Counter[str] = Counter()
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
    for number in range(seed, seed + rounds):
        scratch = Path(tempfile.mkdtemp(prefix="act-storm-", dir=fast))
        try:
            figures += Storm(scratch, number).run(steps)
        except Fault as fault:
            raise Fault(f"--seed {number} --rounds 1: {fault}") from fault
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    figures = storm(given.rounds, given.seed)
    print(", ".join(f"{number:,} {what}" for what, number in figures.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
