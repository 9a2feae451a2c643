"""The brief of an act: its tasks with their evidence, what it does, and the outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, overload

from dibs import Proof, Task, Verdict
from dibs_tui.acting.brief import Brief
from dibs_tui.acting.execute import CHANGED, Outcome, state_now
from dibs_tui.acting.plan import Act, ActPlan, Item, priority_after, undoable
from dibs_tui.acting.undo import described
from dibs_tui.model.last_reasons import last_line
from dibs_tui.model.metadata_text import metadata_text
from dibs_tui.model.proof_lines import VERDICT_INKS, proof_lines
from dibs_tui.model.rows import EMPTY, Row, row
from dibs_tui.model.timeline import became
from dibs_tui.text.ages import clock, counted, short
from dibs_tui.text.safe import clean, fit

if TYPE_CHECKING:
    from dibs_tui.model.known_board import KnownBoard

_SECOND = 1_000_000_000
_PROOFS = 7
"""The lines that the observations about a claim usually take."""
_OUTCOME_INKS = {"done": "ok-text", "unchanged": "muted", "left": "muted", "error": "fail"}
_WORDS = {"left": "not started"}
"""The words of outcomes that are shown in other words."""


# One task


def one(
    plan: ActPlan,
    model: KnownBoard,
    cells: int,
    *,
    then: tuple[Row, ...],
    beaten: bool = False,
    observed: str = "",
) -> Brief:
    """A single task: the verdict, who holds it, and each observation behind the verdict.

    `observed` is what the site's own command says about the holder.
    """
    item = plan.items[0]
    if item.changed:
        return _changed(item, model)
    if item.verdict is None:
        return _unclaimed(plan, then)
    signs = [proof_lines(proof, cells) for proof in item.proofs]
    if beaten:
        signs.append(
            proof_lines(Proof("beat", "a heartbeat came since: its owner is alive", 1), cells)
        )
    if observed:
        signs.append(proof_lines(Proof("site", observed, 0), cells))
    reading = [line for sign in signs for line in sign]
    verdict = item.verdict
    return Brief(verdict.upper(), VERDICT_INKS[verdict], deciding(item), _held(plan), reading, then)


def awaited(plan: ActPlan, then: tuple[Row, ...]) -> Brief:
    """A single task before its evidence was read, in about the room that it will take."""
    item = plan.items[0]
    if not item.target.task.live:
        return _unclaimed(plan, then)
    room = (EMPTY,) * _PROOFS
    return Brief("…", "muted", "reading the evidence …", _held(plan), room, (*then, EMPTY))


def deciding(item: Item) -> str:
    """The fact on which the verdict rests, in a sentence."""
    holder, now = item.holder, item.clock
    if holder is None or now is None:
        return clean(item.proofs[0].text) if item.proofs else "nothing is known about its holder"
    age = holder.age(now)
    last = f"last beat {short(age)} ago"
    match item.verdict:
        case Verdict.DEAD:
            pid = f"process {holder.process.pid}" if holder.process is not None else "its process"
            return f"{pid} exited, {last}"
        case Verdict.EXPIRED:
            return f"{last}, {short(age - holder.ttl)} past its lease of {short(holder.ttl)}"
        case Verdict.ALIVE:
            return f"{last}, its lease ends in {short(holder.ttl - age)}"
    doubts = {proof.kind: proof.text for proof in item.proofs if not proof.weight}
    kinds = ("lock", "record") if holder.flaw or item.target.task.is_shell_claim else ()
    found = next((doubts[kind] for kind in (*kinds, "clock", "beat") if kind in doubts), "")
    return clean(found) or "its holder may still be alive"


def _held(plan: ActPlan) -> tuple[Row, ...]:
    """Who holds it and for how long, and what it last said about its work."""
    item = plan.items[0]
    holder, now, task = item.holder, item.clock, item.target.task
    if holder is None or now is None:
        return (_position(plan),)
    who = clean(holder.owner or item.target.owner) or "unknown owner"
    where = clean(holder.host)
    line: Row = ((who, "text"),)
    if where and where != who:
        line += (" on ", "muted"), (where, "text")
    held = short((now.fs - holder.since) / _SECOND)
    line += (f" · held {held} · fence {task.fence}", "muted"), *_attempt(plan)
    if not holder.note:
        return (line,)
    ago = short((now.fs - holder.noted) / _SECOND) if holder.noted else ""
    note: Row = ((f"“{clean(holder.note, 200)}”", "text"), (ago and f"  {ago} ago", "faint"))
    return line, note


def _attempt(plan: ActPlan) -> Row:
    task = plan.items[0].target.task
    if task.kind == "lock":
        return ()
    of = f" of {plan.attempts}" if plan.attempts else ""
    return ((f" · attempt {task.attempts + 1}{of}", "muted"),)


def _position(plan: ActPlan) -> Row:
    """The numbers of a task that no one holds."""
    task = plan.items[0].target.task
    attempts = f" · {counted(task.attempts, 'attempt')}" if task.attempts else ""
    return row(f"fence {task.fence} · priority {task.priority}{attempts}", "muted")


def _unclaimed(plan: ActPlan, then: tuple[Row, ...]) -> Brief:
    target, task = plan.items[0].target, plan.items[0].target.task
    age = short(target.age)
    fact = {"available": "waits to be claimed", "later": "starts later", "asked": "asks"}.get(
        target.state, "ended"
    )
    fact += f", {age}" if age else ""
    if target.reason:
        fact = clean(last_line(target.reason), 200)
    if plan.act.verb == "prioritize":
        fact = f"priority {task.priority} → {priority_after(plan.act, task)}"
    facts: tuple[Row, ...] = (_position(plan),)
    if age and target.reason:
        facts = (row(f"{age} ago", "muted"), *facts)
    return Brief(target.state.upper(), target.state, fact, facts, (), then)


def _changed(item: Item, model: KnownBoard) -> Brief:
    """What is there in place of the task that was shown; there is nothing to act on."""
    target = item.target
    owner = f", held by {clean(target.owner)}" if target.owner else ""
    seen = row(f"you saw {target.state}{owner}, fence {target.task.fence}", "muted")
    name = row(clean(target.name), "faint")
    who = tuple(row(text, "text") for text in (_by_whom(item.target.task.name, model),) if text)
    if not item.now:
        return Brief("CHANGED", "late", clean(item.changed), (*who, seen, name))
    now, ages = model.now.fs, []
    for task in item.now:
        holder = model.holders.get(task.name)
        since = holder.since if holder is not None else model.since.get(task.name)
        ages.append("" if since is None else short((now - since) / _SECOND))
    fact = ", ".join(map(state_now, item.now, ages))
    return Brief("CHANGED", "late", fact, (*who, seen, name))


def _by_whom(name: str, model: KnownBoard) -> str:
    """Who acted on an exact name that is gone, and when; empty if the log does not say."""
    found = became(model.feed, name, model.now.fs / _SECOND)
    return f"it {found}" if found else ""


# Many tasks


def many(
    plan: ActPlan,
    model: KnownBoard,
    rows: Sequence[Row],
    *,
    with_doubtful: bool,
    then: tuple[Row, ...],
    left_out: str = "",
) -> Brief:
    """A plan: what its tasks have in common, how many are left out, and the list."""
    chosen = plan.chosen(doubtful=with_doubtful)
    facts: list[Row] = [_counts(plan, len(chosen), with_doubtful=with_doubtful)]
    if left_out:
        facts.append(row(left_out, "late"))
    badge, ink, fact = _common(plan, chosen or plan.items, model)
    fact, *more = fact.split("\n")
    facts += [row(line, "muted") for line in more]
    return Brief(badge, ink, fact, tuple(facts), rows, then)


def _counts(plan: ActPlan, chosen: int, *, with_doubtful: bool) -> Row:
    out = Counter(
        _word(item)
        for item in plan.items
        if item.changed or (item.doubtful and not with_doubtful)
    )  # fmt: skip
    done = plan.act.past
    line: Row = ((f"{chosen:,} will be {done}", "bold text"),)
    if out:
        line += (("   left out: ", "muted"),)
        for number, (word, count) in enumerate(sorted(out.items(), key=_most_first)):
            line += ((", " if number else "", "muted"), (f"{count:,} {word}", f"bold {_INK[word]}"))
    return line


def _most_first(kind: tuple[str, int]) -> tuple[int, str]:
    return -kind[1], kind[0]


_INK = {
    **{verdict.upper(): ink for verdict, ink in VERDICT_INKS.items()},
    "changed": "late",
}


def _common(
    plan: ActPlan, items: Sequence[Item], model: KnownBoard
) -> tuple[str, str, str]:  # fmt: skip
    """The badge of most of the tasks, its ink, and what they have in common."""
    if plan.act.id == "undo":
        events = tuple(item.target.undoes for item in plan.items if item.target.undoes)
        return "UNDO", "accent", described(events)
    words = Counter(_word(item) for item in items)
    (badge, _), *_ = words.most_common()
    holders = [
        model.holders[i.target.task.name] for i in items if i.target.task.name in model.holders
    ]
    if holders:
        hosts, owners = {h.host for h in holders}, {h.owner for h in holders}
        last = max(holder.beat for holder in holders)
        ago = short((model.now.fs - last) / _SECOND)
        who = clean(next(iter(hosts))) if len(hosts) == 1 and "" not in hosts else ""
        who = who or (clean(next(iter(owners))) if len(owners) == 1 else "")
        who = who or f"{counted(len(owners), 'owner')} on {counted(len(hosts), 'host')}"
        stopped = "stopped beating" if badge in ("EXPIRED", "DEAD") else "last beat"
        return badge, _INK.get(badge, badge.lower()), f"{who} {stopped} at {clock(last)}, {ago} ago"
    reasons = {last_line(item.target.reason) for item in items}
    ages = [item.target.age for item in items if item.target.age is not None]
    oldest = f", the oldest {short(max(ages))}" if ages else ""
    fact = f"{counted(len(plan.items), 'task')}{oldest}"
    if len(reasons) == 1 and (reason := next(iter(reasons))):
        fact = f"{clean(reason, 200)}{oldest}"
    return badge.upper(), _INK.get(badge, badge), fact


def _word(item: Item) -> str:
    """The verdict of an item, or its state, or `changed`."""
    if item.changed:
        return "changed"
    return item.verdict.upper() if item.verdict is not None else item.target.state


class PlanRows(Sequence[Row]):
    """The rows of a plan, drawn as they come into the window; those left out come first."""

    def __init__(
        self,
        plan: ActPlan,
        model: KnownBoard,
        cells: int,
        *,
        with_doubtful: bool,
        passed: float = 0.0,
        outcomes: Mapping[str, Outcome] | None = None,
        over: bool = False,
    ) -> None:
        """The ages are `passed` seconds more than when the tasks were seen."""
        self._outcomes = outcomes or {}
        self._model = model
        self._over = over
        self._act, self._passed, self._cells = plan.act, passed, cells
        self._with_doubtful = with_doubtful
        self._items = sorted(plan.items, key=self._rank)
        self._widths = _widths(cells)

    def _rank(self, item: Item) -> int:
        if self._over:
            outcome = self._outcomes.get(item.target.name)
            return 0 if outcome is not None and outcome.word != "done" else 1
        return 0 if (item.doubtful and not self._with_doubtful) or item.changed else 1

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [self._row(item) for item in self._items[at]]
        return self._row(self._items[at])

    def _row(self, item: Item) -> Row:
        target, task = item.target, item.target.task
        outcome = self._outcomes.get(target.name)
        out = item.changed or (item.doubtful and not self._with_doubtful)
        word = _word(item)
        ink = f"bold {_INK[word]}" if out and word in _INK else _INK.get(word, word)
        verdict, ident, owner, past, note = self._widths
        text = item.changed or self._note(item)
        if self._act.verb == "prioritize" and not out:
            text = f"priority {task.priority} → {priority_after(self._act, task)}"
        mark = "left out" if out else ""
        if outcome is not None:
            word, text, mark = outcome_word(self._act, outcome), outcome.text, ""
            ink = f"bold {_OUTCOME_INKS.get(outcome.word, 'late')}"
        if (out and item.changed) or (outcome is not None and outcome.word in CHANGED):
            text = text.removeprefix(f"you saw fence {task.fence}; ")  # the room is for what is now
            text = "; ".join(filter(None, (text, _by_whom(task.name, self._model))))
        who, age = target.owner, self._age(item)
        if target.undoes is not None and not out and outcome is None:
            who, text = target.undoes.by, clean(last_line(target.undoes.reason), 200)
        look = "text" if not out else "muted"
        room = max(0, note - len(mark) - 1) if mark else note
        return (
            (f"{fit(word, verdict)} ", ink),
            (f"{fit(clean(task.id), ident, cut='middle')} ", look),
            (f"{fit(clean(who), owner)} ", "muted"),
            (f"{fit(short(age), past, align='right')}  ", "muted"),
            (fit(text, room), ink.removeprefix("bold ") if out or outcome else "faint"),
            (f" {mark}" if mark else "", "muted"),
        )

    def _note(self, item: Item) -> str:
        """Why it failed, or what its holder said last about its work."""
        holder = self._model.holders.get(item.target.task.name)
        if holder is None:
            return clean(last_line(item.target.reason), 200)
        if item.verdict is Verdict.ALIVE and item.target.age is not None:
            return f"beat {short(item.target.age + self._passed)} ago"
        return clean(holder.note, 200) or metadata_text(holder.metadata)

    def _age(self, item: Item) -> float | None:
        """How long it is in its state; of a claim, how long its lease was over until it ended."""
        age = item.target.age
        if item.target.undoes is not None:
            return max(0.0, self._model.now.fs / _SECOND - item.target.undoes.at)
        if age is None:
            return None
        holder = item.holder or self._model.holders.get(item.target.task.name)
        past = age + self._passed - (holder.ttl if holder is not None else 0.0)
        return past if past >= 0 else None


def heads(act: Act, tasks: Iterable[Task], cells: int) -> Row:
    """The column heads of a plan's list."""
    verdict, ident, owner, past, note = _widths(cells)
    texts = ("verdict", "id", "owner", "past", "what is there now")
    if act.id == "undo":
        texts = ("becomes", "id", "by", "ago", "the reason of the act")
    elif not any(task.live for task in tasks):
        texts = ("state", "id", "owner", "since", "what is there now")
    first, *cut, age, last = texts
    fitted = [fit(first, verdict), *map(fit, cut, (ident, owner))]
    return (
        (f"{' '.join(fitted)} ", "band muted"),
        (f"{fit(age, past, align='right')}  {fit(last, note)}", "band muted"),
    )


def _widths(cells: int) -> tuple[int, int, int, int, int]:
    """The widths of verdict, id, owner, age and note in this many cells."""
    ident = max(10, min(32, cells * 22 // 102))
    owner = max(6, min(16, cells * 12 // 102))
    return 11, ident, owner, 7, max(0, cells - 11 - ident - owner - 7 - 5)


# What follows


def consequences(
    plan: ActPlan, *, keep_attempts: bool = False, with_doubtful: bool = True
) -> tuple[Row, ...]:
    """What a plan does, what it does not do, and whether `u` can undo it."""
    act = plan.act
    items = plan.chosen(doubtful=with_doubtful) or plan.items
    lines = [row(f"{_effect(act, items, keep_attempts)}", "text")]
    caveats = " ".join(act.caveats(item.target.task for item in items))
    back = _way_back(act, items)
    if caveats:
        lines.append(row(caveats, "muted"))
    if back:
        forever = back.startswith("Cannot")
        lines.append(row(back, "bold late" if forever and len(plan.items) > 1 else "muted"))
    return tuple(lines)


def _effect(act: Act, items: Sequence[Item], keep_attempts: bool) -> str:
    """What the act does to these, in a sentence."""
    locks = sum(item.target.task.kind == "lock" for item in items)
    single = len(items) == 1
    what = clean(items[0].target.task.id, 60) if single else counted(len(items), "task")
    are = "is" if single else "are"
    if act.id in ("force-release", "reap") and locks == len(items):
        return f"{what if single else counted(locks, 'lock')} {are} free."
    match act.id:
        case "force-release":
            also = f", {counted(locks, 'lock')} of them free" if locks else ""
            attempts = "attempt" if single else "attempts"
            return f"{what} {are} available again{also}, {attempts} not counted."
        case "reap":
            return f"{what} {are} available again with one attempt more, failed after the last."
        case "requeue":
            attempts = "attempts kept" if keep_attempts else "attempts reset to 0"
            return f"{what} {are} available again, {attempts}."
        case "park":
            moves, them = ("moves", "it") if single else ("move", "them")
            return f"{what} {moves} to failed: no worker claims {them} until requeued."
        case "undo":
            return "Each task returns to its previous state."
    changes = {f"{i.target.task.priority} → {priority_after(act, i.target.task)}" for i in items}
    change = next(iter(changes)) if len(changes) == 1 else f"{act.steps:+d}"
    return f"{what}: priority {change}, 9 is claimed first."


def _way_back(act: Act, items: Sequence[Item]) -> str:
    """Whether `u` can undo the act on these items; empty for an undo."""
    revoked = sum(item.target.task.live for item in items)
    back = sum(undoable(act, item.target.task) for item in items)
    if revoked and back:
        claims = counted(revoked, "revoked claim")
        return f"Cannot be undone for {claims}; u undoes the other {back:,}."
    if revoked:
        return "Cannot be undone."
    return f"u undoes {'it' if len(items) == 1 else 'them all'}." if back else ""


# What became of it


def refused(act: Act, outcome: Outcome, model: KnownBoard) -> Brief:
    """The outcome of an act on one task, if it was not done."""
    word = {"changed": "CHANGED", "gone": "GONE", "error": "ERROR"}.get(outcome.word, "NOT DONE")
    ink = _OUTCOME_INKS.get(outcome.word, "late")
    name = row(clean(outcome.target.name), "faint")
    who = _by_whom(outcome.target.task.name, model) if outcome.word in CHANGED else ""
    facts = (*((row(who, "text"),) if who else ()), row(f"not {act.past}", "muted"), name)
    return Brief(word, ink, outcome.text, facts)


def ended(act: Act, outcomes: Sequence[Outcome]) -> str:
    """The title over the results of a plan."""
    words = [outcome.word for outcome in outcomes]
    what = clean(outcomes[0].target.task.id, 60) if len(words) == 1 else f"{len(words):,} tasks"
    done = words.count("done")
    count = "all" if done == len(words) > 1 else f"{done:,}" if done else "none"
    how = f"{count} {act.past}" if len(words) > 1 or not done else act.past
    return f"{act.title} {what}: {'stopped, ' if 'left' in words else ''}{how}"


def results(
    act: Act, outcomes: Sequence[Outcome], rows: Sequence[Row], left_out: str = ""
) -> Brief:
    """The outcomes of a plan: how many of each, and one row for each task."""
    done = all(outcome.word == "done" for outcome in outcomes)
    facts = [row(left_out, "muted")] if left_out else []
    if not done:
        again = any(outcome.word not in ("done", *CHANGED) for outcome in outcomes)
        facts += [row("what can still be done stays marked", "muted")] if again else []
    badge, ink = ("DONE", "ok-text") if done else ("NOT ALL", "late")
    return Brief(badge, ink, counts(act, outcomes), tuple(facts), rows)


def outcome_word(act: Act, outcome: Outcome) -> str:
    """An outcome in a word; what was done has the act's word, because `done` is a state."""
    return act.past if outcome.word == "done" else _WORDS.get(outcome.word, outcome.word)


def counts(act: Act, outcomes: Sequence[Outcome]) -> str:
    """How many of each outcome there are."""
    found = Counter(outcome_word(act, outcome) for outcome in outcomes)
    return " · ".join(f"{count:,} {word}" for word, count in found.items())
