"""The time until the dashboard shows the counts and the first rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from statistics import median

from dibs_tui.text.ages import many
from tests.bench.dashboard_setup import Stage, stage, words
from tests.bench.harness import Limit, Row, compare
from tests.bench.places import Setup
from tests.bench.pty_terminal import Terminal

TITLE = "Dashboard: the first useful frame"

_FIRST = words("task-0000000")
_LIMITS = {1_000: None, 10_000: Limit("at most", 1.25), 100_000: Limit("at most", 2.0)}
_PLAIN = (1_000, 10_000)

Start = Callable[[], tuple[Terminal, tuple[bytes, ...]]]


def run(setup: Setup) -> Iterator[Row]:
    with stage(setup) as found:
        sizes = [n for n in _LIMITS if n <= setup.amount(100_000, 10_000)]
        times = _rounds(_contenders(found, sizes), setup.amount(15, 2))
        yield compare(
            "an empty board", times["0"], "an empty Textual app", times["textual"],
            Limit("at most", 2.0), note=found.note,
        )  # fmt: skip
        for size in sizes:
            what = f"{size:,} waiting tasks"
            yield compare(what, times[str(size)], "an empty board", times["0"], _LIMITS[size])
        for size in _PLAIN:
            what, plain = f"{size:,} waiting tasks", times[f"plain {size}"]
            yield compare(what, times[str(size)], "a plain DataTable of them", plain)
        if not setup.quick:
            yield _longest(found, median(times["0"]))


def _contenders(found: Stage, sizes: list[int]) -> dict[str, Start]:
    boards = {size: found.board(size) for size in (0, *sizes)}
    empty = (words("No tasks yet"),)
    starts: dict[str, Start] = {
        "textual": lambda: (found.textual(), (words("nothing but a label"),)),
        "0": lambda: (found.dashboard(boards[0]), empty),
    }
    for size in sizes:
        starts[str(size)] = start_of(found.dashboard, boards[size], f"available {many(size)}")
    for size in _PLAIN:
        starts[f"plain {size}"] = start_of(found.plain, boards[size], f"{size:,} rows")
    return starts


def start_of(program: Callable[..., Terminal], board: object, count: str) -> Start:
    return lambda: (program(board), (words(count), _FIRST))


def _rounds(starts: dict[str, Start], rounds: int) -> dict[str, list[float]]:
    """The seconds from the start of each process to its frame, in rounds of shuffled order."""
    chance, order = random.Random(1), list(starts)
    times: dict[str, list[float]] = {name: [] for name in order}
    for _ in range(rounds + 1):  # the first one warms the caches
        chance.shuffle(order)
        for name in order:
            times[name].append(first_of(*starts[name]()))
    return {name: found[1:] for name, found in times.items()}


def first_of(terminal: Terminal, patterns: tuple[bytes, ...]) -> float:
    with terminal:
        return max(terminal.wait(each, timeout=180.0) for each in patterns) - terminal.started


def _longest(found: Stage, empty: float) -> Row:
    start = start_of(found.dashboard, found.board(1_000_000), f"available {many(1_000_000)}")
    times = [first_of(*start()) for _ in range(3)]
    return compare("1,000,000 waiting tasks", times, "an empty board", [empty] * 3)
