"""Counts, ages and rates, for people, for Prometheus and for cron."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of
from dibs.cli.say import age
from dibs.clock import SECOND
from dibs.errors import BadName
from dibs.filters import seconds

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.view import Snapshot

WINDOW = 600
"""Seconds of the journal that rates are taken from."""
RATES = {"claims": ("claim", "resume"), "dones": ("done",), "fails": ("fail",), "reaps": ("reap",)}
_match = re.compile(r"\s*([a-z]+(?:/min)?)\s*(>=|<=|>|<|=)\s*([^\s=]+)\s*").fullmatch
_HELP = {
    "tasks": "Tasks and locks on the board by state.",
    "oldest": "Seconds that the longest waiting task has waited.",
    "rate": "Events per minute over the last ten minutes.",
}


def stats(voice: Voice, args: argparse.Namespace) -> int:
    """How a board is doing; 6 when one of the expressions holds."""
    if args.prometheus and voice.json:
        raise BadName("--prometheus has a form of its own: leave --json out")
    tests = [_parsed(text) for text in args.fail_if]
    figures = gather(board_of(args))
    for _, field, _, _ in tests:
        if field not in figures:
            raise BadName(f"there is no figure {field!a}; there are {', '.join(figures)}")
    if args.prometheus:
        print(_prometheus(figures), end="")
    elif voice.json:
        voice.result("", dict(figures))
    else:
        for field, value in figures.items():
            shown = age(value) if field == "oldest" else f"{value:.15g}"
            voice.result(f"{field:<12} {shown}", {})
    failed = [text for text, field, sign, limit in tests if _holds(figures[field], sign, limit)]
    for text in failed:
        voice.words(f"{text} holds")
    return 6 if failed else 0


def gather(board: Board) -> dict[str, float]:
    """Every figure by its name."""
    snapshot = board.snapshot()
    figures: dict[str, float] = dict(snapshot.counts())
    waiting = [e.age or 0.0 for e in board.entries(snapshot) if e.state == "available"]
    figures["oldest"] = round(max(waiting, default=0.0), 3)
    now = snapshot.now.fs / 1e9
    recent = [event for event in board.journal.recent(now - WINDOW) if event.at <= now + 5]
    counts = {field: sum(e.verb in verbs for e in recent) for field, verbs in RATES.items()}
    counts["expiries"] = counts["reaps"] + _stale_since(snapshot, snapshot.now.fs - WINDOW * SECOND)
    return figures | {f"{what}/min": round(n * 60 / WINDOW, 3) for what, n in counts.items()}


def _stale_since(snapshot: Snapshot, start: int) -> int:
    """How many claims fell silent since then, and were not given back."""
    stale = [facts for name, facts in snapshot.facts.items() if snapshot.stale(name)]
    return sum(facts.beat + facts.ttl * SECOND >= start for facts in stale)


def _parsed(text: str) -> tuple[str, str, str, float]:
    m = _match(text)
    if m is None:
        raise BadName(f"{text!a} is no expression: write stale>5, reaps/min>10 or oldest>15m")
    return text, m[1], m[2], seconds(m[3])


def _holds(value: float, sign: str, limit: float) -> bool:
    return {
        ">": value > limit,
        "<": value < limit,
        ">=": value >= limit,
        "<=": value <= limit,
        "=": value == limit,
    }[sign]


def _prometheus(figures: dict[str, float]) -> str:
    """A file for node_exporter's textfile collector."""
    lines = [f"# HELP dibs_tasks {_HELP['tasks']}", "# TYPE dibs_tasks gauge"]
    rates = {f: v for f, v in figures.items() if f.endswith("/min")}
    states = {f: v for f, v in figures.items() if f not in rates and f != "oldest"}
    lines += [f'dibs_tasks{{state="{field}"}} {value:.15g}' for field, value in states.items()]
    lines += [f"# HELP dibs_oldest_waiting_seconds {_HELP['oldest']}"]
    lines += ["# TYPE dibs_oldest_waiting_seconds gauge"]
    lines += [f"dibs_oldest_waiting_seconds {figures['oldest']:.15g}"]
    lines += [f"# HELP dibs_events_per_minute {_HELP['rate']}"]
    lines += ["# TYPE dibs_events_per_minute gauge"]
    for field, value in rates.items():
        event = field.removesuffix("/min")
        lines.append(f'dibs_events_per_minute{{event="{event}"}} {value:.15g}')
    return "\n".join(lines) + "\n"
