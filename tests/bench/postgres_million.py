"""Long boards in PostgreSQL: the first frame, the memory, and claims."""

from __future__ import annotations

from collections.abc import Iterator

from dibs_tui.text.ages import many
from tests.bench.dashboard_setup import Stage, stage
from tests.bench.dashboard_start import first_of, start_of
from tests.bench.harness import Limit, Row, compare, interleave
from tests.bench.places import Setup
from tests.bench.postgres import Ours, claims
from tests.postgres.cluster import Server, server, why_not

TITLE = "PostgreSQL: long boards"

_SHORT, _WARM = 1_000, 50
_MB = 1_000_000


def run(setup: Setup) -> Iterator[Row]:
    if reason := why_not():
        yield Row("long boards in PostgreSQL", note=reason)
        return
    settings = {"shared_buffers": "256MB", "max_wal_size": "4GB"}
    with stage(setup) as found, server(durable=True, settings=settings) as cluster:
        for size in (100_000, 1_000_000):
            if size <= setup.amount(1_000_000, 100_000):
                yield from _dashboards(setup, found, cluster, size)
                yield _claims(setup, cluster, size)


def _dashboards(setup: Setup, found: Stage, cluster: Server, size: int) -> Iterator[Row]:
    ours = Ours(cluster, f"shown_{size}", claims)
    ours.fill(size)
    files = found.board(size)
    boards = {
        "postgres": start_of(found.dashboard, ours.where, f"available {many(size)}"),
        "files": start_of(found.dashboard, files, f"available {many(size)}"),
    }
    times: dict[str, list[float]] = {name: [] for name in boards}
    for _ in range(setup.amount(7, 3) + 1):
        for name, begin in boards.items():
            times[name].append(first_of(*begin()))
    yield compare(
        f"the first frame of {size:,} tasks",
        times["postgres"][1:], "the same on files", times["files"][1:], Limit("at most", 2.5),
    )  # fmt: skip
    memory = {}
    for name, where in (("postgres", ours.where), ("files", str(files))):
        with found.dibs(where) as terminal:
            found.settle(terminal)
            memory[name] = [terminal.rss() / _MB]
    yield compare(
        f"memory of the dashboard with {size:,} tasks",
        memory["postgres"], "the same on files", memory["files"], Limit("at most", 1.25), "MB",
    )  # fmt: skip


def _claims(setup: Setup, cluster: Server, size: int) -> Row:
    short = Ours(cluster, f"short_{size}", claims)
    long = Ours(cluster, f"long_{size}", claims)
    long.fill(size)
    amount = setup.amount(500, 200)
    times = interleave(
        {"short": _Refilled(short), "long": _Filled(long)}, setup.amount(10, 4), amount
    )
    return compare(
        f"a claim with {size:,} tasks",
        times["long"], f"the same with {_SHORT:,}", times["short"], Limit("at most", 1.5),
    )  # fmt: skip


class _Refilled:
    """A board of so many tasks in each round."""

    def __init__(self, board: Ours) -> None:
        self._board = board

    def fill(self, count: int) -> None:
        self._board.fill(_SHORT + _WARM)
        self._board.run(_WARM)  # the server plans its first calls

    def run(self, count: int) -> None:
        self._board.run(count)


class _Filled:
    """A long board, which is filled once."""

    def __init__(self, board: Ours) -> None:
        self._board = board

    def fill(self, count: int) -> None:
        pass

    def run(self, count: int) -> None:
        self._board.run(count)
