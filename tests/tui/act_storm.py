"""An operator who acts at random on a board that a fleet changes at random, judged at every step.

    python -m tests.tui.act_storm                   the full form: 400,000 steps, a few minutes
    python -m tests.tui.act_storm --seed 7          another storm
    python -m tests.tui.act_storm --rounds 50       a shorter one

The operator paints, judges, acts and undoes through the dashboard's own layer below its dialogs.
Between the paint and the act, between two looks of a plan and just before each rename the fleet
moves: it claims, beats, ends, reaps, lets time pass, and another operator acts. One act in seven
is killed at some call. After each act the outcomes that were told, the journal and the names
that were renamed have to be the same, and every name that was renamed has to be one that was
painted; an act that was killed is told apart by its intent without an outcome. An undoing
restores exactly the name that it showed, or moves nothing.
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
from dibs.journal import INTENT, LEDGER, NOTHING_MOVED
from dibs.names import read_any
from dibs_tui.acting.doing import Outcome, done, judged
from dibs_tui.acting.plan import ACTS, Act, Item, Plan, Sight, fitting, priority_after
from tests.core.tools import Place, opened
from tests.tui.act_crew import LOCK, TASKS, Fleet, Killed, Step

VERBS = {act: "prioritise" if act in ("raise", "lower") else act for act in ACTS}
ACTING = ("force-release", "reap", "requeue", "park", "raise", "lower")


class Fault(AssertionError):
    """A promise that was broken."""


class Storm:
    """One round on a board of its own."""

    def __init__(self, scratch: Path, seed: int) -> None:
        self.figures: Counter[str] = Counter()
        self._chance = Random(seed)
        self._place = Place(scratch, ttl=10, plain_ttl=10, max_attempts=4)
        self._fleet = Fleet(self._place, self._chance)
        self._read: dict[str, int] = {}
        self._events: list[dibs.Event] = []
        self._painted: list[Sight] = []
        self._takes: dict[str, int] = {}
        self._crashed: set[tuple[str, str]] = set()
        self._begin()

    def _begin(self) -> None:
        """A process of the operator's own."""
        self._hand = self._fleet.hand("desk")
        self._hand.overtake = self._overtake
        self._board = opened(self._hand)

    def blow(self, steps: int) -> Counter[str]:
        """So many moves of anybody, then the last reckoning."""
        steps_of = (self._fleet.drift, self._paint, self._act, self._undo)
        for _ in range(steps):
            self._chance.choices(steps_of, (6, 2, 4, 1))[0]()
        self._reckon()
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

    def _paint(self) -> None:
        board = self._board
        snapshot = board.snapshot()
        rows = {row.claim: row for row in board.entries(snapshot)}
        self._painted, self._takes = [], {}
        for task in snapshot.tasks.values():
            facts = snapshot.facts.get(task.name)
            name = facts.sight if facts is not None and task.plain else task.name
            row = rows.get(name) or rows[task.stem if task.live else task.name]
            self._painted.append(Sight(task, name, row.state, row.owner, row.age))
            self._takes[name] = self._fleet.takes.get(task.name, 0)

    def _act(self) -> None:
        chance = self._chance
        act = ACTS[chance.choice(ACTING)]
        sights = fitting(act, self._painted)
        if not sights:
            return
        sights = tuple(chance.sample(sights, min(len(sights), chance.randint(1, 4))))
        items: list[Item] = []
        for item in judged(self._board, sights):
            items.append(item)
            self._drift(1)
        chosen = Plan(act, tuple(items)).chosen(odd=chance.random() < 0.7)
        self._drift(2)
        keep = act.id == "requeue" and chance.random() < 0.5
        by, outcomes = self._new("acts"), list[Outcome]()
        with self._killable(0.15, 25 * len(chosen)) as killed, self._as(by) as steps:
            done(
                lambda: self._board,
                act,
                chosen,
                "storm",
                by,
                Event(),
                outcomes.append,
                keep_attempts=keep,
            )
        self._judge(act, chosen, outcomes, steps, by, bool(killed))

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
            raise Fault(f"{by}: the undoing of {shown} moved {moved}")
        if [(e.verb, e.src, e.dst) for e in self._told(by)] != [("undo", *m) for m in wanted]:
            raise Fault(f"{by}: the journal tells another undoing than {wanted}")

    def _new(self, what: str) -> str:
        self.figures[what] += 1
        return f"desk-{what}-{self.figures[what]}"

    @contextmanager
    def _as(self, by: str) -> Iterator[list[Step]]:
        """What the hand renames meanwhile, once it is over."""
        self._hand.who, begun, steps = by, len(self._fleet.trail), list[Step]()
        try:
            yield steps
        finally:
            steps += [step for step in self._fleet.trail[begun:] if step.who == by]

    @contextmanager
    def _killable(self, likely: float, calls: int) -> Iterator[list[bool]]:
        """Perhaps the operator's process is killed at one of its calls; then another goes on."""
        killed: list[bool] = []
        if calls and self._chance.random() < likely:
            self._hand.left = self._chance.randint(1, calls)
        try:
            yield killed
        except Killed:
            killed.append(True)
            self.figures["killed"] += 1
        if killed:
            self._begin()
        self._hand.left = -1

    # What is judged

    def _judge(
        self,
        act: Act,
        chosen: Iterable[Item],
        outcomes: list[Outcome],
        steps: list[Step],
        by: str,
        killed: bool,
    ) -> None:
        items = {item.sight.task.name: item for item in chosen}
        self._only_painted(items, steps, by)
        told = {event.src: event for event in self._told(by)}
        news = [event for event in self._news() if event.by == by]
        intents = {event.src for event in news if event.verb == INTENT}
        answered = {event.src for event in news if event.verb != INTENT}
        landed = {step.src for step in steps} & items.keys()
        for outcome in outcomes:
            self.figures[outcome.word] += 1
            self._one_outcome(act, outcome, told, landed, by)
        if not killed:
            self._ledger(outcomes, by)
        told_of = {outcome.sight.task.name for outcome in outcomes}
        if not intents <= items.keys():
            raise Fault(f"{by}: {intents - items.keys()} was meant and had not been painted")
        if not landed <= intents:
            raise Fault(f"{by}: {landed - intents} was moved without an intent")
        if not killed and told_of != items.keys():
            raise Fault(f"{by}: no outcome of {items.keys() - told_of}")
        silent = landed - told.keys() - told_of
        if len(silent) > 1 or (silent and not killed):
            raise Fault(f"{by}: {silent} was moved, and the journal does not say so")
        for step in steps:
            if step.src in silent:
                self.figures["crashed after the rename"] += 1
                self._crashed.add((step.src, step.dst))
        for name in intents - answered:
            self.figures["intents alone"] += 1
            task = items[name].sight.task
            alone = [e for e in self._board.history(task.id) if e.by == by and e.verb == INTENT]
            if [e.src for e in alone] != [name]:
                raise Fault(f"{by}: the history of {task.id} does not show the crash: {alone}")

    def _ledger(self, outcomes: list[Outcome], by: str) -> None:
        """An act on many leaves one line that counts its outcomes and names what was not done."""
        lines = [event.reason for event in self._news() if (event.by, event.verb) == (by, LEDGER)]
        if len(lines) != (len(outcomes) > 1):
            raise Fault(f"{by}: {len(outcomes)} outcomes, and these ledgers: {lines}")
        for word, count in Counter(outcome.word for outcome in outcomes).items():
            if lines and f"{count} {word}" not in lines[0]:
                raise Fault(f"{by}: {count} {word}, and this ledger: {lines[0]}")
        for outcome in outcomes:
            listed = bool(lines) and f"{outcome.sight.name} ({outcome.word})" in lines[0]
            if lines and listed == (outcome.word == "done"):
                raise Fault(f"{by}: {outcome}, and this ledger: {lines[0]}")

    def _only_painted(self, items: dict[str, Item], steps: list[Step], by: str) -> None:
        """Each rename is of a name that was painted, or goes on with what this act has begun."""
        begun: set[str] = set()
        for step in steps:
            if step.src not in items and step.src not in begun:
                raise Fault(f"{by}: {step.src} was moved and had not been painted")
            if step.src in items:
                task = items[step.src].sight
                if task.task.plain and self._takes[task.name] != step.take:
                    raise Fault(f"{by}: {step.src} was moved, and is another claim by now")
            begun.add(step.dst)

    def _parked_alike(self, outcome: Outcome) -> bool:
        """Whether another reaper did the same at the limit of attempts: the name is the same."""
        renames = [(step.src, step.dst) for step in self._fleet.trail]
        parked = outcome.made.startswith("failed/")
        return parked and (outcome.sight.task.name, outcome.made) in renames

    def _one_outcome(
        self, act: Act, outcome: Outcome, told: dict[str, dibs.Event], landed: set[str], by: str
    ) -> None:
        task = outcome.sight.task
        event = told.get(task.name)
        if outcome.word != "done":
            if event is not None or (task.name in landed and not task.plain):
                raise Fault(f"{by}: {outcome} was told, and yet it was done: {event}")
            return
        if act.id in ("raise", "lower") and priority_after(act, task) == task.priority:
            return
        if event is None and task.name not in landed and self._parked_alike(outcome):
            return
        verbs = (VERBS[act.id], "park") if task.take else (VERBS[act.id],)
        if event is None or event.verb not in verbs or not self._was_moved(event, landed):
            raise Fault(f"{by}: {outcome} was told, and the journal has {event}")
        after = [step.src for step in self._fleet.trail]
        if event.dst not in after and not (self._place.path / event.dst).exists():
            raise Fault(f"{by}: {event.dst} is told of, and is nowhere")

    def _was_moved(self, event: dibs.Event, landed: set[str]) -> bool:
        """Whether this act did it, or, at the limit of attempts, its holder did the very same."""
        same = event.dst.startswith("failed/") and event.verb == "reap"
        return event.src in landed or (same and self._same_effect(event.src, event.dst))

    def _same_effect(self, src: str, dst: str) -> bool:
        return any((step.src, step.dst) == (src, dst) for step in self._fleet.trail)

    def _told(self, by: str) -> list[dibs.Event]:
        """What the journal says that this act did."""
        return [e for e in self._news() if e.by == by and e.src and e.verb not in NOTHING_MOVED]

    def _news(self) -> list[dibs.Event]:
        self._events += self._board.journal.follow(self._read)
        return self._events[-400:]

    def _reckon(self) -> None:
        """At the end each task is there once, whole, where its last rename put it."""
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
        untold, unmoved = steps - lines, lines - steps
        twice = all(d.startswith("failed/") and self._same_effect(s, d) for s, d in unmoved)
        if untold != Counter(self._crashed & steps.keys()) or not twice:
            raise Fault(f"only moved: {untold}, only told: {unmoved}")


def _id(name: str) -> str:
    task = read_any(name)
    return task.id if task is not None else ""


def storm(rounds: int, seed: int, steps: int = 400) -> Counter[str]:
    """So many rounds; the first broken promise ends it, with the seed that repeats it."""
    figures: Counter[str] = Counter()
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
    for number in range(seed, seed + rounds):
        scratch = Path(tempfile.mkdtemp(prefix="act-storm-", dir=fast))
        try:
            figures += Storm(scratch, number).blow(steps)
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
