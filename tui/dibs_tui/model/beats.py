"""The beats of one claim and its lease as text: a sentence, a chart and a list."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dibs.model.beat_history import BeatHistory
from dibs_tui.model.rows import Row, row
from dibs_tui.text.ages import clock, short

_SECOND = 1_000_000_000
_MAX_LEASES = 4
"""The chart goes back at most this many leases."""


def sentence(history: BeatHistory, beat: int, ttl: float, now: int) -> str:
    """How often the claim beats, when it last did, and when the lease expires."""
    age = (now - beat) / _SECOND
    if age < -2:
        return f"the last heartbeat is {short(-age)} in the future, so its age is unknown"
    left = ttl - age
    often = f"beats every {_span(history.cadence / _SECOND)}, " if history.cadence else ""
    late = " (late)" if left > 0 and history.late(now) else ""
    end = f"lease expires in {short(left)}" if left > 0 else f"lease expired {short(-left)} ago"
    return f"{often}last heartbeat {short(age)} ago{late}, {end}"


def chart(history: BeatHistory, beat: int, ttl: float, now: int, cells: int) -> list[Row]:
    """Beats on a time axis, from the earliest known beat to now or to the end of the lease."""
    end, cells = beat + int(ttl * _SECOND), max(12, cells)
    known = [at for at in history.beats if now - _MAX_LEASES * ttl * _SECOND <= at < beat]
    start, last = min([beat, *known]), max(end, now)

    def cell(at: int) -> int:
        return max(0, min(cells - 1, (at - start) * (cells - 1) // max(1, last - start)))

    axis = [("─", "line")] * cells
    lease = ("━", "late" if history.late(now) else "ok")
    _draw(axis, cell(beat), cell(min(now, end)), lease)
    _draw(axis, cell(now), cell(end), ("┄", "line"))
    _draw(axis, cell(end), cell(now), ("═", "alarm"))
    for at in (*known, beat):
        axis[cell(at)] = ("┿" if at == beat else "┼", "ok")
    axis[cell(end)] = ("┃", "alarm")
    axis[cell(now)] = ("●", "strong" if now <= end else "alarm")
    ends = f"lease {short(ttl)}" if now <= end else "lease expired"
    labels = [(cell(now), "now"), (cell(end), ends)]
    if known:
        labels.append((0, f"{short((now - start) / _SECOND)} ago"))
    return [_joined(axis), row(_labelled(labels, cells), "muted")]


def intervals(history: BeatHistory, now: int) -> Iterator[Row]:
    """Every known beat with the time since the previous one, newest first."""
    beats = history.beats
    for n in range(len(beats) - 1, -1, -1):
        ago = f"{short((now - beats[n]) / _SECOND):>8} ago"
        after = (
            f"   {_span((beats[n] - beats[n - 1]) / _SECOND)} after the previous one" if n else ""
        )
        yield (clock(beats[n]), "text"), (ago, "text"), (after, "muted")


def _span(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 else short(seconds)


def _draw(axis: list[tuple[str, str]], start: int, stop: int, with_: tuple[str, str]) -> None:
    for at in range(start, stop + 1):
        axis[at] = with_


def _joined(axis: list[tuple[str, str]]) -> Row:
    """The axis with neighbouring cells of the same look joined."""
    runs = groupby(axis, key=lambda piece: piece[1])
    return tuple(("".join(char for char, _ in run), look) for look, run in runs)


def _labelled(labels: list[tuple[int, str]], cells: int) -> str:
    """Labels below their cells; those listed first win, and one without room is left out."""
    line = " " * cells
    for at, words in labels:
        start = max(0, min(at - len(words) // 2, cells - len(words)))
        if not line[max(0, start - 1) : start + len(words) + 1].strip():
            line = line[:start] + words + line[start + len(words) :]
    return line[:cells].rstrip()
