"""What the wall display says: the line under each count, and one line per cause."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dibs import Finding, Verdict
from dibs.model.waiters import BROKEN, IDLE, PAUSED
from dibs_tui.model.failures import TIMES
from dibs_tui.model.problem_lines import ProblemLine, lines_of, members
from dibs_tui.model.problems import WORKERS, Problem, problems
from dibs_tui.text.ages import UNREAD, clock, counted, many, rate, short
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel
    from dibs_tui.settings.config import Config

COUNTED = ("stale", "failed", "claimed", "available")
_ENDS = {"stale": "reaps", "failed": "fails"}
"""The events that say when there was last one of a state."""
_SECOND = 1_000_000_000
_LONG = 400
_TIMES = f" {TIMES} "
_BACK = 600
"""The seconds for which the wall shows a holder that came back."""


class WallLine(NamedTuple):
    """One cause: its glyph, what it is about, what is wrong, since when, and what is known."""

    glyph: str
    """The name of its glyph."""
    ink: str
    name: str
    word: str
    text: str
    at: float | None = None
    """Since when, in seconds of the board's clock; None if that is not known."""
    total: int = 0
    """How many tasks it stands for, if they have a common cause."""

    def age(self, model: BoardModel) -> str:
        """For how long it has been so."""
        if self.at is None:
            return ""
        return f"{model.age_prefix}{short(max(0.0, model.now.fs / _SECOND - self.at))}"


def wall_lines(
    model: BoardModel,
    config: Config,
    findings: Iterable[Finding] = (),
    *,
    trouble: tuple[str, str] = ("", ""),
) -> list[WallLine]:
    """Every cause, the most urgent first; none if all is clear."""
    word, why = trouble
    if word:  # what was wrong before may be over
        return [WallLine("failed", "alarm", "board", clean(word), clean(why))]
    groups = problems(model, config, findings)
    found = [*_pauses(model)]
    brake = model.brake.why(time.monotonic())
    if brake and not any(_is_storage(problem) for group in groups for problem in group.problems):
        found.append(WallLine("breaker", "alarm", "bulk acts", "locked", clean(brake, _LONG)))
    if back := came_back(model):
        found.append(WallLine("from", "late", back, "", ""))
    found += [_line(model, line) for line in lines_of(model, groups)]
    return sorted(found, key=lambda line: line.glyph != "asked")


def _is_storage(problem: Problem) -> bool:
    """Whether a line already says that many claims stopped together, as the brake does."""
    return problem.key in ("0/read-only", "0/full", "0/storage") or problem.key.startswith(
        "1/moment"
    )


def came_back(model: BoardModel) -> str:
    """Which holders came back in the last minutes; on a wall no one presses Esc to hide them."""
    who, last = model.late_holders.folded(model.now.fs / _SECOND - _BACK)
    return f"{who}  {last}" if who else ""


def under(model: BoardModel, lines: Sequence[WallLine], state: str) -> str:
    """The line under the count of a state."""
    if not model.knows(*COUNTED):
        return f"reading {UNREAD}" if not model.knows(state) else ""
    return _UNDER[state](model, lines)


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if 60 <= seconds < 5400 else short(seconds)


def peak(per_minute: float) -> str:
    """The highest rate of a graph, without its unit."""
    return rate(per_minute).removesuffix("/min")


# Under the counts


def _stale_words(model: BoardModel, lines: Sequence[WallLine]) -> str:
    if not model.count("stale"):
        return _none_for(model, "stale")
    cause = _largest(lines, "stale")
    return f"{many(cause.total)} of {cause.name}" if cause else f"oldest {short(_oldest(model))}"


def _failed_words(model: BoardModel, lines: Sequence[WallLine]) -> str:
    if not model.count("failed"):
        return _none_for(model, "failed")
    cause = _largest(lines, "failed")
    if cause is not None:
        return f"{many(cause.total)} {cause.name.partition(_TIMES)[2] or cause.name}"
    last = max(model.rates.seconds["fails"], default=None)
    return f"last {short(max(0.0, model.now.fs / _SECOND - last))} ago" if last else ""


def _largest(lines: Sequence[WallLine], state: str) -> WallLine | None:
    """The cause of a state that stands for the most tasks."""
    found = [line for line in lines if line.glyph == state and line.total]
    return max(found, key=lambda line: line.total, default=None)


def _claimed_words(model: BoardModel, _: Sequence[WallLine]) -> str:
    states = [waiter.state for waiter in model.waiters]
    parts = [
        f"{many(states.count(state))} {word}"
        for state, word in ((IDLE, "idle"), (PAUSED, "paused"), (BROKEN, BROKEN))
        if state in states
    ]
    locks = model.count("held")
    return ", ".join([*parts, *([f"+ {counted(locks, 'lock')}"] if locks else [])])


def _available_words(model: BoardModel, _: Sequence[WallLine]) -> str:
    later = model.count("later")
    oldest = model.oldest.first(model.tasks)
    parts = [f"{many(later)} later"] if later else []
    if oldest is not None:
        waited = max(0.0, (model.now.fs - oldest[0]) / _SECOND)
        parts.append(f"oldest {model.age_prefix}{short(waited)}")
    return ", ".join(parts)


_UNDER: dict[str, Callable[[BoardModel, Sequence[WallLine]], str]] = {
    "stale": _stale_words,
    "failed": _failed_words,
    "claimed": _claimed_words,
    "available": _available_words,
}


def _none_for(model: BoardModel, state: str) -> str:
    """How long no task has entered a state."""
    last = max(model.rates.seconds[_ENDS[state]], default=None)
    if last is not None:
        return f"none for {short(max(0.0, model.now.fs / 1e9 - last))}"
    return "none in the last hour" if model.rates.begins is None else "none"


def _oldest(model: BoardModel) -> float:
    beats = [model.holders[name].beat for name in model.stale if name in model.holders]
    return (model.now.fs - min(beats)) / _SECOND if beats else 0.0


# The causes

_INKS = {"asked": "ask", "stale": "alarm", "failed": "fail", "late": "late", "available": "muted"}


def _line(model: BoardModel, line: ProblemLine) -> WallLine:
    """A line of the problems on the wall."""
    state, task = line.problem.state, line.problem.task
    ink = _INKS.get(state, "late")
    if task is not None and model.stale.get(task.name) is Verdict.UNKNOWN:
        ink = "ask"
    if line.problem.rank == WORKERS:
        state, ink = "breaker", "alarm"
    at = None if line.since is None else model.now.fs / _SECOND - line.since
    total = len(line.problem.claims) if line.folds else 0
    if total and state == "failed":  # some of them are tried again later, and are not failed
        total = sum(model.state_of(task) == state for task in members(model, line))
    return WallLine(state, ink, clean(line.problem.id, _LONG), line.word, line.detail, at, total)


def _pauses(model: BoardModel) -> Iterator[WallLine]:
    for pause in model.pauses:
        by = clean(pause.by.partition(" ")[0], 60) or "unknown"
        end = f", until {clock(pause.until)[:5]}" if pause.until is not None else ""
        text = f"by {by}{end}: {clean(pause.reason, 200)}"
        name = clean(pause.host) or "board"
        yield WallLine("paused", "pause", name, "paused", text, pause.at)
