"""The verbs that only read: ls, show, log, status, where and paths."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from dibs.board import locate
from dibs.cli.boards import board_of, chosen, id_in, named
from dibs.cli.said import said
from dibs.cli.say import fields_of, is_parked
from dibs.model.errors import BadName, DibsError, UnknownId
from dibs.model.events import INTENT, REFUSED, ROTATED, last, outcomes, spoken
from dibs.model.filters import parse, states, uses
from dibs.model.questions import summary
from dibs.model.reasons import last_reasons
from dibs.model.safe_text import age, command
from dibs.model.task import DONE, LATER, STATES
from dibs.model.waiters import WAITER_STATES, waiter_entry

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.model.answers import LockStatus
    from dibs.model.entries import Entry
    from dibs.model.events import Event
    from dibs.model.evidence import Evidence
    from dibs.model.questions import Question
    from dibs.model.task import Task

_HISTORY = 1000
"""How many events `show` prints at most; a lock may have had any number."""
ORDER = STATES
WORKERS = WAITER_STATES
"""States of workers that wait; they are listed only if `kind=worker` or one of these is given."""
_TIMES = ("age", "held", "ttl", "remaining", "starts", "progress")
_SINCE = {
    "available": "waiting",
    "asked": "waiting",
    "failed": "ended",
    "done": "ended",
    "free": "free",
    "claimed": "beat",
    "held": "beat",
    "stale": "beat",
    **dict.fromkeys(WAITER_STATES, "waiting"),
}
"""What the age of a row counts from, in a word."""
APART = ("done", "failed", "free")
"""States in folders that grow without end; they are listed only if a filter asks for them."""


def ls(voice: Voice, args: argparse.Namespace) -> int:
    """List tasks and locks, the most urgent first."""
    if args.state is not None and args.state not in ORDER + WORKERS:
        raise _no_state(args.state)
    for term in args.filter:
        state = term.removeprefix("state=")
        if state != term and state not in ORDER + WORKERS:
            raise _no_state(state)
    terms = [*args.filter, *([f"state={args.state}"] if args.state else [])]
    test = parse(terms)
    board = board_of(args)
    mine = _mine(board, args)
    wanted = states(terms, ORDER)
    apart = not wanted.isdisjoint(APART)
    snapshot = board.snapshot(ended=apart)
    totals = snapshot.counts()
    if not apart:
        for state, count in board.count_apart().items():
            totals[state] += count
    rows = board.entries(snapshot, wanted)
    if uses(terms, "reason"):
        rows = _with_reasons(board, rows)
    if not {"kind=worker", *(f"state={state}" for state in WORKERS)}.isdisjoint(terms):
        rows += [waiter_entry(one, snapshot.now) for one in snapshot.waiters]
    rows = [entry for entry in rows if test(entry) and (mine is None or entry.claim in mine)]
    rows.sort(key=lambda e: ((ORDER + WORKERS).index(e.state), -e.priority, e.claim))
    limit = board.settings.max_attempts
    if rows and voice.heads:
        print(f"{'STATE':<10} {'ID':<24} {'OWNER':<16} PRI  {'AGE':<12} NAME")
    for entry in rows:
        if voice.json:
            voice.result("", fields_of(entry, limit))
        else:
            _line(voice, entry, snapshot.exact, limit)
    counts = ", ".join(counted(totals, snapshot.next_start()))
    if (terms or mine is not None) and counts:
        counts = f"{len(rows)} of {sum(totals.values())} match ({counts})"
    waiting = Counter(waiter.state for waiter in snapshot.waiters)
    idle = ", ".join(f"{waiting[state]} {state}" for state in WORKERS if waiting[state])
    idle = f"; workers: {idle}" if idle else ""
    sys.stdout.flush()  # if the rows cannot be written, that is the only message
    voice.words(f"{board.location.label}: {counts or 'no tasks; `dibs add ID` adds one'}{idle}")
    if snapshot.pauses:
        from dibs.cli.pausing import lines

        for line in lines(snapshot):
            voice.words(line)
    return 0


def _mine(board: Board, args: argparse.Namespace) -> set[str] | None:
    """The exact names of the caller's claims; None if all rows are wanted."""
    if not args.mine and args.owner is None:
        return None
    from dibs.cli.mine import mine, owned_only_with_mine

    owned_only_with_mine(args)
    return {row.claim for row in mine(board, args)}


def _with_reasons(board: Board, rows: list[Entry]) -> list[Entry]:
    """The rows with why their last attempts failed, from the log; none for a done task."""
    found = last_reasons(board.log, [row.id for row in rows if row.state != DONE])
    return [
        row._replace(reason=found.get(row.id, "")) if row.state != DONE else row for row in rows
    ]


def counted(totals: Mapping[str, int], next_start: float | None) -> Iterator[str]:
    """The number of tasks in each state that has any; for later ones, when the next one starts."""
    for state, count in totals.items():
        if count:
            soon = next_start if state == LATER else None
            when = "" if soon is None else f" (next in {age(soon)})" if soon else " (next due)"
            yield f"{count} {state}{when}"


def _no_state(state: str) -> BadName:
    return BadName(f"there is no state {state!r}: use one of {', '.join(ORDER + WORKERS)}")


def _title(entry: Entry) -> str:
    """The id as people read it; one of several slots of a lock with its number."""
    if entry.kind != "lock":
        return entry.id
    from dibs.model.slots import title

    return title(entry.id)


def _line(voice: Voice, entry: Entry, exact: bool, max_attempts: int) -> None:
    from dibs.model.safe_text import padded, shown

    since = f"{_SINCE.get(entry.state, '')} {'' if exact else '≥'}{age(entry.age)}"
    if entry.starts is not None:
        since = f"starts in {age(entry.starts)}" if entry.starts else "due"
    elif entry.age is None:
        since = ""
    who = f"{padded(shown(_title(entry)), 24)} {padded(shown(entry.owner), 16)}"
    priority = str(entry.priority) if entry.kind == "task" else ""
    rest = shown(f"{priority:>3}  {since:<12} {entry.claim}")
    word = "parked" if is_parked(entry, max_attempts) else entry.state
    what = entry.metadata or entry.reason or summary(entry.question)
    note = f"{entry.note} ({age(entry.progress)} ago)" if entry.note else ""
    more = "".join(f"  {shown(text)}" for text in (what, note) if text)
    print(voice.state(word, 10) + f" {who} {rest}{more}")


def show(voice: Voice, args: argparse.Namespace) -> int:
    """Show every name of an id with its fields and its history."""
    board = board_of(args)
    found = named(board, args.id)
    if args.payload:
        return _payload(voice, board, found)
    for task, entry in zip(found, board.entries_of(found), strict=True):
        history = board.log.of(task.id, _HISTORY + 1)
        fields = fields_of(entry, board.settings.max_attempts)
        _complete(voice, board, task, fields, history[-_HISTORY:])
    if len(history) > _HISTORY:
        voice.words(f"older events are not shown: `{command('log', found[0].id)}` shows all")
    return 0


def _payload(voice: Voice, board: Board, found: tuple[Task, ...]) -> int:
    """Print the payload of a task as it is; on a terminal without its control characters."""
    if voice.json:
        raise BadName("--payload prints the payload itself: leave --json out")
    if len(found) > 1:
        raise BadName(f"{found[0].id!r} has several names: `dibs show` lists them")
    sys.stdout.flush()
    data = board.payload(found[0], 1 << 30)
    if sys.stdout.isatty():
        from dibs.model.safe_text import output_text

        sys.stdout.write(output_text(data))
    else:
        sys.stdout.buffer.write(data)
    return 0


def _complete(
    voice: Voice, board: Board, task: Task, fields: dict[str, object], events: list[Event]
) -> None:
    evidence, asked, more = _evidence(board, task), board.questions(task), said(board, task)
    if voice.json:
        found: dict[str, object] = {"path": task.name, "answers": [q.fields for q in asked]}
        if evidence is not None:
            proofs = [proof._asdict() for proof in evidence.proofs]
            found["evidence"] = {"verdict": evidence.verdict, "proofs": proofs}
        found["history"] = [event._asdict() for event in events]
        voice.result("", fields | found | more)
        return
    from dibs.model.safe_text import shown

    for key, value in fields.items():
        if value not in (None, "", False) and key != "question":
            text = age(value) if key in _TIMES and isinstance(value, int | float) else value
            text = "yes" if value is True else text
            print(shown(f"{key:<10} {text}"))
    for question in asked:
        _question(question)
    if evidence is not None:
        print(f"{'verdict':<10} {evidence.verdict}")
        for proof in evidence.proofs:
            print(shown(f"{'':<10} {proof.kind:<10} {proof.text.removeprefix(f'{proof.kind} ')}"))
    for line in str(more.get("result", "")).splitlines():
        print(shown(f"{'result':<10} {line}"))
    if "logs" in more:
        hint = voice.runnable(f"`{command('logs', task.id)}` shows what it printed")
        print(shown(f"{'output':<10} {hint}"))
    for event in events:
        print(shown(f"{'':<10} {_event(event)}"))


def _question(question: Question) -> None:
    """Print a question and its answer, all their lines."""
    from dibs.model.safe_text import shown

    by = f" ({question.answered_by})" if question.answered_by else ""
    texts = {"question": f"{question.text} ({question.owner}, fence {question.fence})"}
    texts["answer"] = f"{question.answer}{by}" if question.answer is not None else "none"
    texts["flaw"] = question.flaw
    for key, text in texts.items():
        for n, line in enumerate(text.splitlines()):
            print(shown(f"{'' if n else key:<10} {line}"))


def _evidence(board: Board, task: Task) -> Evidence | None:
    """The evidence on the holder; None without one, or if the storage fails."""
    try:
        return board.evidence(task) if task.live else None
    except DibsError:
        return None


def log(voice: Voice, args: argparse.Namespace) -> int:
    """Print the events of the board or of one id, and follow new ones if asked."""
    board = board_of(args)
    ident = None if args.id is None else id_in(board, args.id)
    seen = board.log.end()
    for line in board.log.omitted():
        voice.words(line)
    events: Iterable[Event] = board.log.oldest_first(ident, seen)
    if args.last is not None:
        backwards = board.log.newest_first(ident, until=seen)
        raw = [*islice(backwards, args.last)][::-1] if voice.json else None
        events = raw if raw is not None else last(backwards, args.last)
    pause = 0.3
    known = ident is None or args.follow or args.last == 0
    while True:
        for event in events if voice.json else outcomes(events):
            if ident in (None, event.id):
                known = True
                voice.result(_event(event), event._asdict())
        if not known and ident is not None and not board.find(ident):
            raise UnknownId(f"no event in the log has the id {ident!r}: `dibs ls` lists the ids")
        if not args.follow:
            return 0
        sys.stdout.flush()
        time.sleep(pause)
        start = time.monotonic()
        events, seen = board.log.since(seen)
        pause = max(0.3, 10 * (time.monotonic() - start))


def status(voice: Voice, args: argparse.Namespace) -> int:
    """Show who holds a lock and for how long, and the same of each of its slots."""
    from dibs.model.slots import split

    board = board_of(args)
    ident = split(id_in(board, args.id))[0]
    found = board.status(ident)
    text, fields = _holder(found, ident)
    each = [_holder(one, one.task.id if one.task is not None else ident) for one in found.slots]
    if not voice.json and each:
        width = len(str(found.slots[-1].slot))
        for one, (line, _) in zip(found.slots, each, strict=True):
            voice.result(f"slot {one.slot:>{width}}  {line}", {})
        return 0
    if each:
        numbered = zip(found.slots, each, strict=True)
        fields["slots"] = [{"slot": one.slot, **row} for one, (_, row) in numbered]
    voice.result(text, fields)
    return 0


def _holder(found: LockStatus, ident: str) -> tuple[str, dict[str, object]]:
    """The state of one lock or slot, as a line and as JSON fields."""
    if not found.held:
        return "free", {"status": "free", "id": ident}
    assert found.task is not None
    if found.expired:
        ago = age(found.age - found.ttl)
        words = (
            f"stale: its lease of {found.ttl:g}s expired {ago} ago, {found.owner} on {found.host}"
        )
    else:
        left = f"{age(found.remaining)} left of {found.ttl:g}s"
        words = f"held by {found.owner} on {found.host}, {left}"
    return f"{words}  {found.task.stem}  {found.metadata}".rstrip(), {
        "status": "held",
        "id": ident,
        "claim": found.task.stem,
        "owner": found.owner,
        "host": found.host,
        "fence": found.task.fence,
        "age": round(found.age, 3),
        "ttl": found.ttl,
        "remaining": round(found.remaining, 3),
        "expired": found.expired,
        "metadata": found.metadata,
    }


def where(voice: Voice, args: argparse.Namespace) -> int:
    """Show which board is used here, and why; neither looks at it nor makes it."""
    found = chosen(args)
    board = locate(found.where).label
    fields = {"board": board, "rule": found.rule, "file": found.file or None, "why": found.why}
    voice.result(board, fields)
    voice.words(found.why)
    return 0


def paths(voice: Voice, args: argparse.Namespace) -> int:
    """Show the paths of the board and its parts, and what each value came from."""
    from dibs.shipped import shell_library

    chose = chosen(args)
    location, source = locate(chose.where), chose.source
    found = {"board": (location.label, source)}
    if location.folder:
        found["settings"] = (os.path.join(location.folder, ".dibs", "board.toml"), source)
        found["shell"] = (shell_library(), "the package")
    for key, (value, source) in found.items():
        note = f"  ({source})" if key == "board" else ""
        if key == "settings" and not os.path.lexists(value):
            note = "  (not there: the defaults apply)"
        if key == "shell" and not os.path.lexists(value):  # dibs is one file
            note = "  (inside that file: `dibs help shell` prints it)"
        fields = {"board": location.label, "key": key, "path": value, "from": source}
        voice.result(f"{key:<10} {value}{note}", fields)
    return 0


def _said(event: Event) -> str:
    """The last note of a claim that ended."""
    return f"  (last note: {event.note})" if event.note else ""


def _event(event: Event) -> str:
    from dibs.model.slots import title

    ident, verb = title(event.id), spoken(event.verb)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(event.at))
    what = f"{event.src or '-'} → {event.dst or '-'}"
    if event.verb == REFUSED:
        cause = "lease expired" if event.dst else "was lost"
        what = f"{event.src} {cause} before its {event.reason or 'holder came back'}"
        return f"{when} {verb:<13} {ident}  {what}  {event.by}"
    if event.verb == INTENT:
        what += "  no outcome: it crashed, or is still running"
    if event.verb == ROTATED:
        what = event.src
    why = event.reason + _said(event)
    return f"{when} {verb:<13} {ident}  {what}  {event.by}  {why}".rstrip()
