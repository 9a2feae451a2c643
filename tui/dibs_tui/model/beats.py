"""The beats of one claim against its lease: a sentence, a line of ticks, and a list."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dibs_tui.ages import clock, short
from dibs_tui.model.rhythm import Rhythm
from dibs_tui.model.rows import Row, row

_SECOND = 1_000_000_000
_BEFORE = 4
"""So many leases back the axis of time begins at the earliest."""


def sentence(rhythm: Rhythm, beat: int, ttl: float, now: int) -> str:
    """How regularly it beats, when it did last, and when the lease ends."""
    silent = (now - beat) / _SECOND
    if silent < -2:
        return f"its last beat lies {short(-silent)} in the future: no age can be told"
    left = ttl - silent
    often = f"beats every {_span(rhythm.cadence / _SECOND)}, " if rhythm.cadence else ""
    late = ", late by its own cadence" if left > 0 and rhythm.late(now) else ""
    end = f"lease ends in {short(left)}" if left > 0 else f"lease over for {short(-left)}"
    return f"{often}last {short(silent)} ago{late}, {end}"


def chart(rhythm: Rhythm, beat: int, ttl: float, now: int, cells: int) -> list[Row]:
    """Ticks on an axis of time, from the beats known to the end of the lease or to now."""
    end, cells = beat + int(ttl * _SECOND), max(12, cells)
    known = [at for at in rhythm.beats if now - _BEFORE * ttl * _SECOND <= at < beat]
    start, last = min([beat, *known]), max(end, now)

    def cell(at: int) -> int:
        return max(0, min(cells - 1, (at - start) * (cells - 1) // max(1, last - start)))

    axis = [("─", "muted")] * cells
    lease = ("━", "late" if rhythm.late(now) else "claimed")
    _draw(axis, cell(beat), cell(min(now, end)), lease)
    _draw(axis, cell(now), cell(end), ("┄", "claimed"))
    _draw(axis, cell(end), cell(now), ("═", "stale"))
    for at in (*known, beat):
        axis[cell(at)] = ("┿" if at == beat else "┼", "claimed")
    axis[cell(end)] = ("┃", "stale")
    axis[cell(now)] = ("●", "strong" if now <= end else "stale")
    ends = f"lease {short(ttl)}" if now <= end else "lease ended"
    labels = [(cell(now), "now"), (cell(end), ends)]
    if known:
        labels.append((0, f"{short((now - start) / _SECOND)} ago"))
    return [_joined(axis), row(_labelled(labels, cells), "muted")]


def intervals(rhythm: Rhythm, now: int) -> Iterator[Row]:
    """Every known beat with the time since the one before, the newest first."""
    beats = rhythm.beats
    for n in range(len(beats) - 1, -1, -1):
        ago = f"{short((now - beats[n]) / _SECOND):>8} ago"
        after = f"   {_span((beats[n] - beats[n - 1]) / _SECOND)} after the one before" if n else ""
        yield (clock(beats[n]), "text"), (ago, "text"), (after, "muted")


def _span(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 else short(seconds)


def _draw(axis: list[tuple[str, str]], start: int, stop: int, with_: tuple[str, str]) -> None:
    for at in range(start, stop + 1):
        axis[at] = with_


def _joined(axis: list[tuple[str, str]]) -> Row:
    """Neighbours of one look as one piece."""
    runs = groupby(axis, key=lambda piece: piece[1])
    return tuple(("".join(char for char, _ in run), look) for look, run in runs)


def _labelled(labels: list[tuple[int, str]], cells: int) -> str:
    """Words below their cells, the first ones first; one without room is left out."""
    line = " " * cells
    for at, words in labels:
        start = max(0, min(at - len(words) // 2, cells - len(words)))
        if not line[max(0, start - 1) : start + len(words) + 1].strip():
            line = line[:start] + words + line[start + len(words) :]
    return line[:cells].rstrip()
