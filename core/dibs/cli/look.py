"""The reader's verbs."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, place
from dibs.cli.say import age, fields_of
from dibs.errors import BadName, DibsError, UnknownId
from dibs.filters import parse, states
from dibs.journal import INTENT, REFUSED, ROTATED, last, outcomes

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.entries import Entry
    from dibs.evidence import Evidence
    from dibs.journal import Event
    from dibs.names import Task

_HISTORY = 1000
"""So many events of a task are shown with it; a lock may have had any number."""
ORDER = ("stale", "claimed", "held", "available", "failed", "free", "done")
APART = ("done", "failed", "free")
"""What lies apart from the queue, grows without end, and is looked at only if it is asked for."""


def ls(voice: Voice, args: argparse.Namespace) -> int:
    """Every task and lock, the urgent first."""
    if args.state is not None and args.state not in ORDER:
        raise BadName(f"there is no state {args.state!a}; there are {', '.join(ORDER)}")
    for term in args.filter:
        state = term.removeprefix("state=")
        if state != term and state not in ORDER:
            raise BadName(f"there is no state {state!a}; there are {', '.join(ORDER)}")
    terms = [*args.filter, *([f"state={args.state}"] if args.state else [])]
    test = parse(terms)
    board = board_of(args)
    wanted = states(terms, ORDER)
    apart = not wanted.isdisjoint(APART)
    snapshot = board.snapshot(ended=apart)
    totals = snapshot.counts()
    if not apart:
        for state, count in board.count_apart().items():
            totals[state] += count
    rows = [entry for entry in board.entries(snapshot, wanted) if test(entry)]
    rows.sort(key=lambda e: (ORDER.index(e.state), -e.priority, e.id, e.claim))
    for entry in rows:
        voice.result("", fields_of(entry)) if voice.json else _line(voice, entry, snapshot.exact)
    counts = ", ".join(f"{n} {state}" for state, n in totals.items() if n)
    voice.words(f"{board.path}: {counts or 'no tasks here; `dibs add ID` makes one'}")
    return 0


def _line(voice: Voice, entry: Entry, exact: bool) -> None:
    from dibs.cli.say import padded, shown

    heard = f"{'' if exact else '≥'}{age(entry.age)}"
    who = f"{padded(shown(entry.id), 24)} {padded(shown(entry.owner), 16)}"
    rest = shown(f"{heard:>6}  {entry.claim}  {entry.metadata}")
    print(voice.state(entry.state, 10) + f" {who} {rest}".rstrip())


def show(voice: Voice, args: argparse.Namespace) -> int:
    """All names of an id with every field, and what happened to it."""
    board = board_of(args)
    found = board.find(args.id)
    if not found:
        raise UnknownId(f"{args.id!a} is not on this board: `dibs ls` shows what there is")
    for task, entry in zip(found, board.entries_of(found), strict=True):
        history = board.history(task.id, _HISTORY + 1)
        _whole(voice, task, entry, _evidence(board, task), history[-_HISTORY:])
    if len(history) > _HISTORY:
        voice.words(f"older events are left out: `dibs log {shlex.quote(args.id)}` shows them all")
    return 0


def _whole(
    voice: Voice, task: Task, entry: Entry, evidence: Evidence | None, events: list[Event]
) -> None:
    if voice.json:
        found: dict[str, object] = {"path": task.name}
        if evidence is not None:
            proofs = [proof._asdict() for proof in evidence.proofs]
            found["evidence"] = {"verdict": evidence.verdict, "proofs": proofs}
        found["history"] = [event._asdict() for event in events]
        voice.result("", fields_of(entry) | found)
        return
    from dibs.cli.say import shown

    for key, value in fields_of(entry).items():
        if value not in (None, ""):
            print(shown(f"{key:<10} {value}"))
    if evidence is not None:
        print(f"{'verdict':<10} {evidence.verdict}")
        for proof in evidence.proofs:
            print(shown(f"{'':<10} {proof.text}"))
    for event in events:
        print(shown(f"{'':<10} {_event(event)}"))


def _evidence(board: Board, task: Task) -> Evidence | None:
    """What is known of the holder, if there is one and the disk tells."""
    try:
        return board.evidence(task) if task.live else None
    except DibsError:
        return None


def log(voice: Voice, args: argparse.Namespace) -> int:
    """The journal, all of it or of one id or its end, and on from there."""
    board = board_of(args)
    seen = board.journal.ends()
    _warn_of_overlong(voice, board)
    events: Iterable[Event] = board.journal.oldest_first(args.id, seen)
    if args.last is not None:
        backwards = board.journal.newest_first(args.id, upto=seen)
        raw = [*islice(backwards, args.last)][::-1] if voice.json else None
        events = raw if raw is not None else last(backwards, args.last)
    pause = 0.3
    while True:
        for event in events if voice.json else outcomes(events):
            if args.id in (None, event.id):
                voice.result(_event(event), event._asdict())
        if not args.follow:
            return 0
        sys.stdout.flush()
        time.sleep(pause)
        start = time.monotonic()
        events = board.journal.follow(seen)
        pause = max(0.3, 10 * (time.monotonic() - start))


def _warn_of_overlong(voice: Voice, board: Board) -> None:
    found = board.journal.overlong()
    if len(found) == 1:
        file, size = found[0]
        voice.words(f"{file} has {size >> 20:,} MiB: only its newest part is shown")
    elif found:
        from dibs.findings import some

        size = sum(size for _, size in found)
        named = some([file for file, _ in found])
        voice.words(f"{named} have {size >> 20:,} MiB: only their newest parts are shown")


def status(voice: Voice, args: argparse.Namespace) -> int:
    """Who holds a named lease and for how long."""
    found = board_of(args).status(args.id)
    if not found.held:
        voice.result("free", {"status": "free", "id": args.id})
        return 0
    assert found.task is not None
    if found.expired:
        ago = age(found.age - found.ttl)
        words = (
            f"stale: its lease of {found.ttl:g}s expired {ago} ago, {found.owner} on {found.host}"
        )
    else:
        left = f"{age(found.remaining)} left of {found.ttl:g}s"
        words = f"held by {found.owner} on {found.host}, {left}"
    voice.result(
        f"{words}  {found.task.stem}  {found.metadata}".rstrip(),
        {
            "status": "held",
            "id": args.id,
            "claim": found.task.stem,
            "owner": found.owner,
            "host": found.host,
            "fence": found.task.fence,
            "age": round(found.age, 3),
            "ttl": found.ttl,
            "remaining": round(found.remaining, 3),
            "expired": found.expired,
            "metadata": found.metadata,
        },
    )
    return 0


def paths(voice: Voice, args: argparse.Namespace) -> int:
    """Where everything lies, and where each value came from."""
    import dibs

    board = place(args)
    named = os.environ.get("DIBS_DIR")
    source = "-d"
    if args.dir == (named or "."):  # an empty one was refused
        source = "$DIBS_DIR" if named else "the current directory"
    shell = os.path.join(os.path.dirname(dibs.__file__), "sh", "dibs.sh")
    found = {
        "board": (board, source),
        "settings": (os.path.join(board, ".dibs", "board.toml"), source),
        "shell": (shell, "the package"),
    }
    for key, (value, source) in found.items():
        note = f"  ({source})" if key == "board" else ""
        voice.result(f"{key:<10} {value}{note}", {"key": key, "path": value, "from": source})
    return 0


def _event(event: Event) -> str:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(event.at))
    what = f"{event.src or '-'} → {event.dst or '-'}"
    if event.verb == REFUSED:
        cause = "lease expired" if event.dst else "was lost"
        what = f"{event.src} {cause} before its {event.reason or 'holder came back'}"
        return f"{when} {event.verb:<13} {event.id}  {what}  {event.by}"
    if event.verb == INTENT:
        what += "  no outcome is told: it crashed, or is still at it"
    if event.verb == ROTATED:
        what = event.src
    return f"{when} {event.verb:<13} {event.id}  {what}  {event.by}  {event.reason}".rstrip()
