"""Counts, ages and rates, for people, for Prometheus and for cron."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from dibs.cli.boards import board_of
from dibs.cli.say import age
from dibs.errors import BadName
from dibs.filters import seconds
from dibs.names import AVAILABLE
from dibs.rates import WINDOW, silent

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice

RATES = {
    "claims": ("claims", False),
    "dones": ("dones", False),
    "fails": ("fails", False),
    "reaps": ("reaps", False),
    "expiries": ("reaps", True),
}
"""The kind of event behind each rate, and whether claims that expired and are stale still count."""
_match = re.compile(r"\s*([a-z]+(?:/min)?)\s*(>=|<=|>|<|=)\s*([^\s=]+)\s*").fullmatch
_HELP = {
    "tasks": "Tasks and locks on the board by state.",
    "oldest": "Seconds that the longest waiting task has waited.",
    "rate": "Events per minute over the last ten minutes.",
    "complete": "1, or 0 while a journal cannot be read and the events are lower bounds.",
}


def stats(voice: Voice, args: argparse.Namespace) -> int:
    """How a board is doing; 6 when one of the expressions holds."""
    if args.prometheus and voice.json:
        raise BadName("--prometheus has a form of its own: leave --json out")
    tests = [_parsed(text) for text in args.fail_if]
    board = board_of(args)
    figures = gather(board)
    for _, field, _, _ in tests:
        if field not in figures.values:
            raise BadName(f"there is no figure {field!a}; there are {', '.join(figures.values)}")
    if args.prometheus:
        print(_prometheus(figures, board.path), end="")
    elif voice.json:
        voice.result("", {**figures.values, "complete": figures.complete})
    else:
        for field, value in figures.values.items():
            shown = age(value) if field == "oldest" else f"{value:.15g}"
            voice.result(f"{field:<12} {'≥ ' if figures.least(field) else ''}{shown}", {})
    if not figures.complete:
        voice.words("the rates are lower bounds: a journal cannot be read, or not far enough back")
    rings = [said for test in tests if (said := _rings(figures, *test))]
    for said in rings:
        voice.words(said)
    return 6 if rings else 0


class Figures(NamedTuple):
    """How a board is doing."""

    values: dict[str, float]
    """Every figure by its name."""
    complete: bool
    """False where a journal could not be read: the rates are then lower bounds."""

    def least(self, field: str) -> bool:
        """Whether a figure is only a lower bound."""
        return not self.complete and field.endswith("/min")


def gather(board: Board) -> Figures:
    """Every figure there is."""
    snapshot = board.snapshot(ended=False)
    values: dict[str, float] = dict(snapshot.counts())
    for state, count in board.count_apart().items():
        values[state] += count
    rows = board.entries(snapshot, {AVAILABLE})
    waiting = [e.age or 0.0 for e in rows if e.state == AVAILABLE]
    values["oldest"] = round(max(waiting, default=0.0), 3)
    now = snapshot.now.fs
    rates = board.journal.rates(now / 1e9 - WINDOW)
    stale = [facts for name, facts in snapshot.facts.items() if snapshot.stale(name)]
    for field, (kind, more) in RATES.items():
        unheard = silent(stale, now) if more else 0
        values[f"{field}/min"] = round(rates.per_minute(kind, now / 1e9, unheard), 3)
    return Figures(values, rates.complete)


def _parsed(text: str) -> tuple[str, str, str, float]:
    m = _match(text)
    if m is None:
        raise BadName(f"{text!a} is no expression: write stale>5, reaps/min>10 or oldest>15m")
    return text, m[1], m[2], seconds(m[3])


def _rings(figures: Figures, text: str, field: str, sign: str, limit: float) -> str:
    """Why an alarm is raised, in words; empty where it is certain that it does not hold."""
    value = figures.values[field]
    if _holds(value, sign, limit) and not (figures.least(field) and sign in ("<", "<=", "=")):
        return f"{text} holds"
    if not figures.least(field) or (value > limit and sign in ("<", "<=", "=")):
        return ""
    return "" if sign == "<" and value == limit else f"{text} may hold: at least {value:.15g}"


def _holds(value: float, sign: str, limit: float) -> bool:
    return {
        ">": value > limit,
        "<": value < limit,
        ">=": value >= limit,
        "<=": value <= limit,
        "=": value == limit,
    }[sign]


def _prometheus(figures: Figures, path: str) -> str:
    """A file for node_exporter's textfile collector."""
    board = f'board="{_label(path)}"'
    rates = {f: v for f, v in figures.values.items() if f.endswith("/min")}
    states = {f: v for f, v in figures.values.items() if f not in rates and f != "oldest"}
    series = {
        "dibs_tasks": ("tasks", {f',state="{f}"': v for f, v in states.items()}),
        "dibs_oldest_waiting_seconds": ("oldest", {"": figures.values["oldest"]}),
        "dibs_events_per_minute": (
            "rate",
            {f',event="{f.removesuffix("/min")}"': v for f, v in rates.items()},
        ),
        "dibs_events_complete": ("complete", {"": float(figures.complete)}),
    }
    lines = []
    for name, (text, samples) in series.items():
        lines += [f"# HELP {name} {_HELP[text]}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{board}{labels}}} {value:.15g}" for labels, value in samples.items()]
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    """A label's value; what is no UTF-8 is shown escaped."""
    shown = os.fsencode(text).decode("utf-8", "backslashreplace")
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
