"""A million tasks: the time to open, to reach the end, to filter and to sort."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from dibs_tui.text.ages import many
from tests.bench.dashboard_setup import LIVE, Stage, stage, words
from tests.bench.harness import Row
from tests.bench.places import Setup

TITLE = "Dashboard: a million tasks"

_PART = "99"


def run(setup: Setup) -> Iterator[Row]:
    tasks = setup.amount(1_000_000, 50_000)
    with stage(setup) as found:
        board = found.board(tasks)
        rounds = [_round(found, board, tasks) for _ in range(setup.amount(3, 1))]
        for n, what in enumerate(
            ("opened: the first rows and the counts", "opened: completely read, and live",
             "to the last row (G)", "filtered (/id~99)", "the filter cleared (Esc)",
             "sorted by another column (s)", "sorted the other way round (I)")
        ):  # fmt: skip
            yield Row(
                f"{tasks:,} tasks {what}",
                median(row[n] for row in rounds),
                note=found.note if not n else "",
            )


def _round(found: Stage, board: Path, tasks: int) -> list[float]:
    matching = sum(_PART in f"task-{n:07}" for n in range(tasks))
    with found.dashboard(board) as terminal:
        seconds = [
            max(
                terminal.wait(words(f"available {many(tasks)}")),
                terminal.wait(words("task-0000000")),
            ),
            terminal.wait(LIVE),
        ]
        seconds = [at - terminal.started for at in seconds]
        found.settle(terminal)
        terminal.wait(words("available"), terminal.send("2")[0])
        for keys, seen in (
            ("G", f"task-{tasks - 1:07}"),
            (f"/id~{_PART}\r", f"{many(matching)} of {many(tasks)} match"),
            ("\x1b", f"available {many(tasks)}"),
            ("s\x1b[A\r", "id↑"),
            ("I", "id↓"),
        ):
            here, at = terminal.send(keys)
            seconds.append(terminal.wait(words(seen), here) - at)
            found.settle(terminal)
    return seconds
