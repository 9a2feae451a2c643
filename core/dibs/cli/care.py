"""The janitor and the doctor."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, place, say_task
from dibs.errors import BadName

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.findings import Finding


def reap(voice: Voice, args: argparse.Namespace) -> int:
    """Give back what fell silent, once or for ever, or exactly one claim."""
    board = board_of(args)
    if args.name is not None:
        return _reap_one(voice, board, args)
    if args.reason:
        raise BadName("--reason goes with the exact name of one claim")
    while True:
        reaped = board.reap()
        for task in reaped.given_back:
            say_task(voice, "reaped", task)
        for line in reaped.refused if voice.json else ():
            voice.result("", {"status": "refused", "error": line})
        if reaped.refused:
            others = len(reaped.refused) - 1
            more = f"; {others} more like it: `dibs check` lists them" if others else ""
            voice.words(f"not given back: {reaped.refused[0]}{more}")
        if reaped.waiting is not None and args.every is None:
            left = reaped.waiting
            if voice.json:
                voice.result("", {"status": "waiting", "retry": round(left, 3)})
            voice.words(f"nobody can vouch for the clock yet; look again in {max(1.0, left):.0f} s")
        if args.every is None:
            return 1 if reaped.refused else 0
        sys.stdout.flush()
        time.sleep(max(0.05, args.every))


def _reap_one(voice: Voice, board: Board, args: argparse.Namespace) -> int:
    from dibs.cli.act import exactly

    if args.every is not None:
        raise BadName("one claim is given back once: leave --every out")
    exactly(board, args.name)
    say_task(voice, "reaped", board.reap_claim(args.name, args.reason))
    return 0


def check(voice: Voice, args: argparse.Namespace) -> int:
    """Tell of everything that is not as it should be, and mend what can be."""
    if args.probe or args.peer:
        return _probe(voice, args)
    board = board_of(args)
    mended: list[Finding] = []
    findings = board.repair(mended.append) if args.repair else board.check()
    for finding in mended:
        line = f"mended: {finding.kind} {finding.name}: {finding.text}"
        voice.result(line, _fields(finding, mendable=False) | {"mended": True})
    for finding in findings:
        mendable = finding.mend is not None and not args.repair
        hint = "  (--repair)" if mendable else ""
        fields = _fields(finding, mendable=mendable) | ({"mended": False} if args.repair else {})
        voice.result(f"{finding.kind:<10} {finding.name}: {finding.text}{hint}", fields)
    faults = sum(finding.fault for finding in findings)
    if not faults:
        voice.words("nothing else is wrong" if mended else "nothing wrong")
    return 6 if faults else 0


def _fields(finding: Finding, *, mendable: bool) -> dict[str, object]:
    return {
        "kind": finding.kind,
        "name": finding.name,
        "text": finding.text,
        "repairable": mendable,
        "fault": finding.fault,
        **({"ids": finding.ids} if finding.ids else {}),
    }


def _probe(voice: Voice, args: argparse.Namespace) -> int:
    """Tell what the directory can do, by doing it, and what that comes to."""
    from dibs.probing.fitness import trouble, verdict
    from dibs.probing.probe import probe

    if args.repair or not args.probe:
        raise BadName("--peer goes with --probe, and --repair with neither")
    board = board_of(args)
    lines = []
    for line in probe(board.path, args.peer or ""):
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
    """Remove the payloads of tasks that were done long enough ago."""
    count = board_of(args).purge(args.older_than)
    voice.result(str(count), {"status": "purged", "count": count})
    return 0


def forget(voice: Voice, args: argparse.Namespace) -> int:
    """Free the ids of tasks that are gone; what keeps one does not keep the others."""
    idents = _listed(args)
    kept = 0
    for ident, refusal in board_of(args).forget_each(idents):
        if refusal is not None and len(idents) == 1:
            raise refusal
        status, told = ("forgotten", "") if refusal is None else ("refused", str(refusal))
        kept += refusal is not None
        fields = {"status": status, "id": ident} | ({"error": told} if told else {})
        voice.result(f"{status:<9} {ident}{told and f': {told}'}", fields)
    return 3 if kept else 0


def _listed(args: argparse.Namespace) -> list[str]:
    """The ids of the line and of the list, each once."""
    from dibs.cli.produce import listed

    idents = list(args.id)
    if args.source is not None:
        lines = listed(args.source).split("\n")
        idents += [line.rstrip("\r") for line in lines if line.rstrip("\r")]
    if not idents:
        raise BadName("give the ids to free, or a list with --from FILE")
    return list(dict.fromkeys(idents))


def upgrade(voice: Voice, args: argparse.Namespace) -> int:
    """Make a board of format 1 one of format 2, while no claim on it is alive."""
    from dibs.settings import FORMAT
    from dibs.upgrading import upgrade

    path = place(args)
    status = "upgraded" if upgrade(path) else "current"
    board_of(args)
    words = f"{path} has format {FORMAT}" + (" now" if status == "upgraded" else " already")
    voice.result(words, {"status": status, "board": path, "format": FORMAT})
    return 0
