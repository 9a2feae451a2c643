"""The maintenance verbs: the janitor, checks, removal and upgrade."""

from __future__ import annotations

import argparse
import sys
import time
from math import ceil
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, place, require, say_task
from dibs.cli.stdio import flush_between, unwritten
from dibs.model.capabilities import Capability
from dibs.model.errors import BadName
from dibs.model.task import CLAIMED, HELD

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.pager import Pager
    from dibs.cli.say import Voice
    from dibs.model.answers import Finding

_SHORTEST = 0.05
"""The shortest time between two passes of `reap --every`, in seconds."""


def reap(voice: Voice, args: argparse.Namespace) -> int:
    """Requeue stale claims, once or until stopped, or one given claim."""
    if args.every is not None and args.every < _SHORTEST:
        raise BadName(f"--every must be at least {_SHORTEST:g} seconds, got {args.every:g}")
    board = board_of(args)
    if args.name is not None:
        return _reap_one(voice, board, args)
    if args.reason:
        raise BadName("--reason needs the exact name of one claim: add CLAIM")
    pager = _pager(args.notify) if args.notify is not None else None
    try:
        return _reap_all(voice, board, args, pager)
    except OSError as error:  # the pass was done in full, and its answer is unread
        return unwritten(error, acted=True)


def _reap_all(voice: Voice, board: Board, args: argparse.Namespace, pager: Pager | None) -> int:
    while True:
        reaped = pager.reap(board, go_on=args.every is not None) if pager else board.reap()
        for task in reaped.tasks:
            say_task(voice, "reaped", task)
        for task in reaped.due:
            say_task(voice, "due", task)
        for line in reaped.refused if voice.json else ():
            voice.result("", {"status": "refused", "error": line})
        if reaped.refused:
            others = len(reaped.refused) - 1
            more = f"; and {others} more: `dibs check` lists them" if others else ""
            voice.words(f"not requeued: {reaped.refused[0]}{more}")
        if reaped.retry is not None and args.every is None:
            left, count = max(1, ceil(reaped.retry)), reaped.unproven
            if voice.json:
                retry = round(reaped.retry, 3)
                voice.result("", {"status": "waiting", "retry": retry, "claims": count})
            have = "claim has" if count == 1 else "claims have"
            why = "but the clock is not trusted yet"
            voice.words(f"{count or 'some'} {have} expired, {why}: try again in {left} s")
        if args.every is None:
            if pager is not None:
                pager.end()
            return 1 if reaped.refused else 0
        flush_between()
        time.sleep(min(args.every, max(_SHORTEST, reaped.next or args.every)))


def _pager(command: str) -> Pager:
    from dibs.cli.pager import Pager

    return Pager(command)


def _reap_one(voice: Voice, board: Board, args: argparse.Namespace) -> int:
    from dibs.cli.act import exactly

    if args.every is not None or args.notify is not None:
        given = "--every" if args.every is not None else "--notify"
        raise BadName(f"{given} cannot be combined with CLAIM: leave one of them out")
    exactly(board, args.name, "reap", CLAIMED, HELD)
    say_task(voice, "reaped", board.reap_claim(args.name, args.reason))
    return 0


def check(voice: Voice, args: argparse.Namespace) -> int:
    """Report each fault of the board; with `--repair`, repair what can be repaired."""
    if args.probe or args.peer:
        return _probe(voice, args)
    board = board_of(args)
    require(board, Capability.CHECK)
    repaired: list[Finding] = []
    findings = board.repair(repaired.append) if args.repair else board.check()
    for finding in repaired:
        text = voice.runnable(finding.text)
        line = f"repaired: {finding.kind} {finding.name}: {text}"
        voice.result(line, _fields(finding, text, repairable=False) | {"mended": True})
    for finding in findings:
        repairable = finding.repair is not None and not args.repair
        hint = "  (--repair)" if repairable else ""
        text = voice.runnable(finding.text)
        fields = _fields(finding, text, repairable=repairable) | (
            {"mended": False} if args.repair else {}
        )
        voice.result(f"{finding.kind:<10} {finding.name}: {text}{hint}", fields)
    faults = sum(finding.fault for finding in findings)
    if not faults:
        voice.words("no other faults" if repaired else "no faults")
    return 6 if faults else 0


def _fields(finding: Finding, text: str, *, repairable: bool) -> dict[str, object]:
    return {
        "kind": finding.kind,
        "name": finding.name,
        "text": text,
        "repairable": repairable,
        "fault": finding.fault,
        **({"ids": finding.ids} if finding.ids else {}),
    }


def _probe(voice: Voice, args: argparse.Namespace) -> int:
    """Report what the storage can do, found out by trying, and the verdict."""
    from dibs.model.fitness import trouble, verdict

    if args.repair or not args.probe:
        raise BadName("--peer needs --probe, and --repair cannot be combined with either")
    board = board_of(args)
    require(board, Capability.PROBE)
    lines = []
    for line in board.probe(args.peer or ""):
        lines.append(line)
        voice.result(
            f"{line.ability:<12} {line.grade:<4}  {line.text}",
            {"ability": line.ability, "grade": line.grade, "text": line.text, **line.figures},
        )
        sys.stdout.flush()
    found = verdict(lines)
    wrong = trouble(found, board.settings.ttl)
    voice.result(wrong or found.text, {**found._asdict(), "text": wrong or found.text})
    return 6 if wrong else 0


def purge(voice: Voice, args: argparse.Namespace) -> int:
    """Remove old done tasks with their payloads."""
    count = board_of(args).purge(args.older_than)
    tasks = "1 done task was" if count == 1 else f"{count} done tasks were"
    voice.result(f"{tasks} removed", {"status": "purged", "count": count})
    return 0


def forget(voice: Voice, args: argparse.Namespace) -> int:
    """Free the ids of removed tasks; a refused id does not stop the others."""
    idents = _listed(args)
    kept = 0
    for ident, refusal in board_of(args).forget_each(idents):
        if refusal is not None and len(idents) == 1:
            raise refusal
        status, why = (
            ("forgotten", "") if refusal is None else ("refused", voice.runnable(str(refusal)))
        )
        kept += refusal is not None
        fields = {"status": status, "id": ident} | ({"error": why} if why else {})
        voice.result(f"{status:<9} {ident}{why and f': {why}'}", fields)
    if not idents:
        voice.words("the list is empty")
    return 3 if kept else 0


def _listed(args: argparse.Namespace) -> list[str]:
    """The ids of the command line and of the list, without repeats."""
    from dibs.cli.produce import listed
    from dibs.model.names import lines_of

    if not args.id and args.source is None:
        raise BadName("no ids to free: give them, or a list with --from FILE")
    listing = lines_of(listed(args.source)) if args.source is not None else []
    return list(dict.fromkeys([*args.id, *listing]))


def copy(voice: Voice, args: argparse.Namespace) -> int:
    """Copy a paused board to another place, and compare both."""
    from dibs.board import locate
    from dibs.copying import copy

    found = copy(args.source, args.target)
    source, target = (locate(place).label for place in (args.source, args.target))
    content = found.content
    done = "was copied already" if found.before else "is copied"
    voice.result(
        f"{source} {done} to {target}; both have {content.text}",
        {
            "status": "current" if found.before else "copied",
            "board": target,
            "from": source,
            **content._asdict(),
            "omitted": list(found.omitted),
        },
    )
    for line in found.omitted:
        voice.words(f"not copied: {line}")
    if not found.before:
        if locate(args.target).folder:
            voice.words("ages begin again: in a directory a task is as old as its file")
        voice.words(
            f"both boards are paused: let the workers use {target}, then run "
            f"`dibs -d {target} resume`"
        )
    return 0


def upgrade(voice: Voice, args: argparse.Namespace) -> int:
    """Upgrade a board to today's format; refused while a claim on it is alive."""
    from dibs.board import locate, upgrade
    from dibs.model.settings import FORMAT

    location = locate(place(args))
    status = "upgraded" if upgrade(location.where) else "current"
    board_of(args)
    version: dict[str, object] = {"format": FORMAT} if location.folder else {}
    newest = f"format {FORMAT}" if version else "the newest format"
    words = f"{location.label} {'now' if status == 'upgraded' else 'already'} has {newest}"
    voice.result(words, {"status": status, "board": location.label, **version})
    return 0
