"""The verb `stats`: counts, ages and rates for people, Prometheus and alarms."""

from __future__ import annotations

import argparse
import os
import re
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from dibs.cli.boards import board_of
from dibs.cli.pausing import lines
from dibs.model.errors import BadName
from dibs.model.filters import seconds
from dibs.model.rates import WINDOW, drain_time, expired_lately
from dibs.model.safe_text import age, shown
from dibs.model.sample import SECOND
from dibs.model.task import AVAILABLE, LATER
from dibs.model.usual import LEAST, VERBS, kind_of, learn
from dibs.model.waiters import WAITER_STATES

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.model.snapshot import Snapshot

RATES = {
    "claims": ("claims", False),
    "dones": ("dones", False),
    "fails": ("fails", False),
    "reaps": ("reaps", False),
    "expiries": ("reaps", True),
}
"""For each rate its kind of event, and whether stale claims not yet reaped count too."""
_SHELL = "shell-claims"
_PAUSES = ("pauses", _SHELL)
"""The figures of pauses; the second counts shell claims made while one is in force."""
_SECONDS = ("oldest", "next", "drain")
_match = re.compile(r"\s*([a-z-]+(?:/min)?)\s*(>=|<=|>|<|=)\s*([^\s=]+)\s*").fullmatch
_HELP = {
    "tasks": "Tasks and locks on the board by state.",
    "workers": "Workers that wait for a task by state.",
    "untaken": "Available tasks, if no worker on a host that is not paused works or waits; else 0.",
    "drain": "Seconds until the backlog is done at the present rates; +Inf if it does not shrink.",
    "oldest": "Age in seconds of the oldest available task.",
    "next": "Seconds until the next later task is due; 0 if one is, or if none waits.",
    "rate": "Events per minute over the last ten minutes.",
    "pauses": "Pauses of new claims that are in force.",
    "shell": "Shell claims made during a pause.",
    "complete": "1; 0 while part of the log cannot be read and the rates are lower bounds.",
    "long": "Claims that take unusually long for their kind of task.",
    "total": "Events since the board's log began.",
}
_LISTED = 20
"""So many unusually long claims are listed."""


def stats(voice: Voice, args: argparse.Namespace) -> int:
    """Print the figures of a board; returns 6 when an alarm condition holds."""
    if args.prometheus and voice.json:
        raise BadName("--prometheus and --json are different formats: leave --json out")
    tests = [_parsed(text) for text in args.fail_if]
    board = board_of(args)
    figures = gather(board)
    for _, field, _, _ in tests:
        if field not in figures.values:
            raise BadName(f"there is no figure {field!r}: use one of {', '.join(figures.values)}")
    if args.prometheus:
        print(_prometheus(figures, board), end="")
    elif voice.json:
        rows = [claim._asdict() for claim in figures.long]
        more = {"complete": figures.complete, "long_claims": rows}
        known = {
            field: value if isfinite(value) else None for field, value in figures.values.items()
        }
        voice.result("", {**known, **more})
    else:
        for field, value in figures.values.items():
            least = "≥ " if figures.least(field) else ""
            voice.result(f"{field:<12} {least}{_words(field, value)}", {})
        for claim in figures.long[:_LISTED]:
            voice.result(f"{'':<12} {claim.id}: {claim.text}", {})
    for line in lines(figures.snapshot):
        voice.words(line)
    if not figures.complete:
        voice.words("rates are lower bounds: the log cannot be read completely, or is too short")
    alarms = [why for test in tests if (why := _alarm(figures, *test))]
    for why in alarms:
        voice.words(why)
    return 6 if alarms else 0


def _words(field: str, value: float) -> str:
    """A figure as people read it."""
    if isfinite(value):
        if field.endswith("/min"):
            return f"{value:.{1 if value < 9.95 else 0}f}".removesuffix(".0")
        return age(value) if field in _SECONDS else f"{value:.15g}"
    return "not known yet" if isnan(value) else "not shrinking"


class LongClaim(NamedTuple):
    """A claim that takes unusually long."""

    id: str
    claim: str
    owner: str
    held: float
    usual: float
    """The usual seconds of this kind of task."""
    text: str


class Figures(NamedTuple):
    """The figures of a board."""

    values: dict[str, float]
    """Every figure by its name."""
    complete: bool
    """False if part of the log could not be read; the rates are then lower bounds."""
    snapshot: Snapshot
    long: tuple[LongClaim, ...] = ()
    """The claims that take unusually long, the longest first."""

    def least(self, field: str) -> bool:
        """Whether a figure is only a lower bound."""
        return not self.complete and field.endswith("/min")


def gather(board: Board) -> Figures:
    """Read all figures of a board."""
    snapshot = board.snapshot(ended=False)
    values: dict[str, float] = dict(snapshot.counts())
    for state, count in board.count_apart().items():
        values[state] += count
    rows = board.entries(snapshot, {AVAILABLE})
    waiting = [e.age or 0.0 for e in rows if e.state == AVAILABLE]
    values["backlog"] = values[AVAILABLE] + values[LATER]
    values["next"] = round(snapshot.next_start() or 0.0, 3)
    values |= {s: sum(one.state == s for one in snapshot.waiters) for s in WAITER_STATES}
    values["untaken"] = snapshot.untaken()
    values["oldest"] = round(max(waiting, default=0.0), 3)
    values["pauses"] = len(snapshot.pauses)
    values[_SHELL] = snapshot.shell_claims
    now = snapshot.now.fs
    rates = board.log.rates(now / 1e9 - WINDOW)
    stale = [holder for name, holder in snapshot.holders.items() if snapshot.stale(name)]
    for field, (kind, more) in RATES.items():
        unreaped = expired_lately(stale, now) if more else 0
        values[f"{field}/min"] = round(rates.per_minute(kind, now / 1e9, unreaped), 3)
    left = drain_time(rates, now / 1e9, int(values["backlog"])) if rates.complete else nan
    values["drain"] = round(left, 3)
    long = tuple(long_claims(board, snapshot))
    values["long"] = len(long)
    return Figures(values, rates.complete, snapshot, long)


def long_claims(board: Board, snapshot: Snapshot) -> list[LongClaim]:
    """The claims that take unusually long; the log is read only if one is old enough."""
    now = snapshot.now.fs
    held = {h.act_name: (h, (now - h.since) / SECOND) for h in snapshot.holders.values()}
    old = {name: one for name, one in held.items() if one[1] >= LEAST}
    if not old:
        return []
    kinds = {kind_of(holder.task.id) for holder, _ in old.values()}
    known = learn(board.log.newest_first(verbs=VERBS), kinds)
    found = []
    for name, (holder, been) in old.items():
        usual = known.too_long(holder.task, been)
        if usual is not None:
            ident, often = holder.task.id, round(usual.median, 3)
            words = usual.words(been)
            found.append(LongClaim(ident, name, holder.owner, round(been, 3), often, words))
    return sorted(found, key=lambda claim: -claim.held)


def _parsed(text: str) -> tuple[str, str, str, float]:
    m = _match(text)
    if m is None:
        raise BadName(
            f"{text!r} is not a condition: write one such as stale>5, reaps/min>10 or oldest>15m"
        )
    return text, m[1], m[2], seconds(m[3])


def _alarm(figures: Figures, text: str, field: str, sign: str, limit: float) -> str:
    """Why a condition raises an alarm; empty if it certainly does not hold."""
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


def prometheus(board: Board) -> str:
    """The figures of a board in the text form of Prometheus."""
    return _prometheus(gather(board), board)


def _prometheus(figures: Figures, board: Board) -> str:
    """The same with figures that were read already."""
    totals = board.log.totals()
    label = f'board="{_label(board.location.label)}"'
    rates = {f: v for f, v in figures.values.items() if f.endswith("/min")}
    workers = {s: figures.values[s] for s in WAITER_STATES}
    apart = {*rates, *workers, *_SECONDS, "backlog", "untaken", "long", *_PAUSES}
    states = {f: v for f, v in figures.values.items() if f not in apart}
    pauses = figures.values["pauses"]
    whole = float(sum(pause.covers_all for pause in figures.snapshot.pauses))
    series = {
        "dibs_tasks": ("tasks", {f',state="{f}"': v for f, v in states.items()}),
        "dibs_workers_waiting": ("workers", {f',state="{f}"': v for f, v in workers.items()}),
        "dibs_untaken_tasks": ("untaken", {"": figures.values["untaken"]}),
        "dibs_oldest_waiting_seconds": ("oldest", {"": figures.values["oldest"]}),
        "dibs_next_start_seconds": ("next", {"": figures.values["next"]}),
        "dibs_drain_seconds": ("drain", {"": figures.values["drain"]}),
        "dibs_events_per_minute": (
            "rate",
            {f',event="{f.removesuffix("/min")}"': v for f, v in rates.items()},
        ),
        "dibs_events_complete": ("complete", {"": float(figures.complete)}),
        "dibs_pauses": ("pauses", {',hosts="all"': whole, ',hosts="some"': pauses - whole}),
        "dibs_shell_claims_while_paused": ("shell", {"": figures.values[_SHELL]}),
        "dibs_unusually_long_claims": ("long", {"": figures.values["long"]}),
        "dibs_events_total": ("total", {f',event="{f}"': float(v) for f, v in totals.items()}),
    }
    lines = []
    for name, (text, samples) in series.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {_HELP[text]}", f"# TYPE {name} {kind}"]
        lines += [
            f"{name}{{{label}{labels}}} {_number(value)}" for labels, value in samples.items()
        ]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """A value as Prometheus reads it."""
    if isfinite(value):
        return f"{value:.15g}"
    return "NaN" if isnan(value) else "+Inf"


def _label(text: str) -> str:
    """A label's value; bytes that are not UTF-8 and control characters are escaped."""
    lines = os.fsencode(text).decode("utf-8", "backslashreplace").split("\n")
    return "\\n".join(shown(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
