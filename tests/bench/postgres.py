"""A board in PostgreSQL: claims, whole cycles and batches, against other queues on one server.

The server is in memory and flushes each commit there, so what is left is the work itself: on a disk
the flush hides the difference.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dibs
from tests.bench.harness import Contender, Limit, Row, compare, interleave
from tests.bench.places import Setup, scratch
from tests.bench.startup import COMMAND, Python
from tests.postgres.cluster import Server, server, why_not

TITLE = "PostgreSQL"
BATCH = 10
PEERS = ("procrastinate>=3.10,<4", "pgqueuer[psycopg]>=1.6,<2", "psycopg[binary]>=3.2.4")
_HAND = """
CREATE TABLE job (
  id text PRIMARY KEY, state text NOT NULL, priority int NOT NULL, payload bytea NOT NULL);
CREATE INDEX job_waiting ON job (priority DESC, id) WHERE state = 'waiting';
CREATE TABLE lease (id text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL);
CREATE TABLE audit (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL, owner text NOT NULL,
  verb text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
"""
_CLAIM = """
WITH head AS (
  SELECT id FROM job WHERE state = 'waiting' ORDER BY priority DESC, id LIMIT 1
  FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE job SET state = 'claimed' FROM head WHERE job.id = head.id RETURNING job.id, job.payload
), leased AS (
  INSERT INTO lease SELECT id, %s, clock_timestamp() + interval '120 s' FROM taken
), audited AS (
  INSERT INTO audit (id, owner, verb) SELECT id, %s, 'claim' FROM taken
)
SELECT id, payload FROM taken
"""


class Hand:
    """The claim that one would write by hand, with a lease row and an audit row."""

    def __init__(self, where: str) -> None:
        import psycopg

        self.conn = psycopg.connect(where, autocommit=True)
        self.conn.execute(_HAND)

    def fill(self, count: int) -> None:
        self.conn.execute("TRUNCATE job, lease, audit")
        self.conn.execute(
            "INSERT INTO job SELECT 'task-' || n, 'waiting', 5, 'x' FROM generate_series(1, %s) n",
            (count,),
        )
        self.conn.execute("ANALYZE job")

    def run(self, count: int) -> None:
        for _ in range(count):
            assert self.conn.execute(_CLAIM, ("bench", "bench")).fetchall()


class Ours:
    """A board of dibs; `work` does what is timed."""

    def __init__(self, cluster: Server, name: str, work: Callable[[dibs.Board, int], None]) -> None:
        self.where = cluster.create(name)
        self.board = dibs.open(self.where, create=True)
        self.sql: Callable[..., Any] = lambda query: cluster.sql(query, database=name)
        self.work = work

    def fill(self, count: int) -> None:
        fill(self.sql, count)

    def run(self, count: int) -> None:
        self.work(self.board, count)


def fill(sql: Callable[..., Any], count: int) -> None:
    """Empty a board, and add so many tasks as `add` would."""
    series = f"generate_series(0, {count - 1}) n"
    numbers = f"(SELECT 'task-' || lpad(n::text, 7, '0') AS id FROM {series})"
    sql("TRUNCATE dibs.claim, dibs.payload, dibs.event")
    sql("DELETE FROM dibs.task WHERE eid <> ''")
    sql(
        "INSERT INTO dibs.task SELECT id, id || '.available', 'available', 0, 0, 5, 0, 0, 0, '', "
        f"dibs.clock(), 1 FROM {numbers} numbers"
    )
    sql(f"INSERT INTO dibs.payload SELECT id, 'x' FROM {numbers} numbers")
    sql(
        "INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act) "
        "SELECT eid, 1, (SELECT max(line) FROM dibs.history), since - 172800000000000, 'add', '', "
        "name, 'me', '', '', '' FROM dibs.task WHERE eid <> ''"
    )
    sql("VACUUM ANALYZE")  # else the server does it while the clock runs


def claims(board: dibs.Board, count: int) -> None:
    for _ in range(count):
        assert board.claim(owner="bench") is not None


def batches(board: dibs.Board, count: int) -> None:
    for _ in range(count // BATCH):
        assert len(board.claim_many(BATCH, owner="bench")) == BATCH


def cycles(board: dibs.Board, count: int) -> None:
    """The whole cycle, as a worker's loop does it, with nothing to do."""
    done = 0
    for claim in board.work(owner="bench"):
        with claim:
            done += 1
    assert done == count


class Peer:
    """A peer in a process and a venv of its own; `verb` is what is timed."""

    def __init__(
        self, python: Path, stack: ExitStack, where: str, name: str, verb: str, number: int
    ) -> None:
        program = Path(__file__).with_name("postgres_peers.py")
        self._process = subprocess.Popen(
            [python, program, name, where, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(self._end)
        self._verb = verb
        self._answer("ready")

    def _answer(self, wanted: str) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        assert answer == wanted, answer

    def _say(self, verb: str, count: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{verb} {count}\n")
        self._process.stdin.flush()
        self._answer("done")

    def fill(self, count: int) -> None:
        self._say("fill", count)

    def run(self, count: int) -> None:
        self._say(self._verb, count)

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()


def peers(where: Path) -> Path:
    """The Python of a new venv with the peers; $DIBS_BENCH_PEERS names one that exists."""
    given = os.environ.get("DIBS_BENCH_PEERS")
    if given:
        return Path(given) / "bin/python"
    subprocess.run([sys.executable, "-m", "venv", where], check=True)
    subprocess.run([where / "bin/pip", "install", "-q", *PEERS], check=True)
    return where / "bin/python"


def run(setup: Setup) -> Iterator[Row]:
    if reason := why_not():
        yield Row("everything in PostgreSQL", note=reason)
        return
    with ExitStack() as stack:
        where = stack.enter_context(scratch(setup.ram))
        cluster = stack.enter_context(server(durable=True))
        yield from _claims(setup, cluster)
        yield from _cold(setup, cluster, where)
        try:
            python = peers(where / "venv")
        except (OSError, subprocess.CalledProcessError) as error:
            yield Row("against procrastinate and pgqueuer", note=f"not installed: {error}")
            return
        yield from _peers(setup, cluster, python, stack)


def _claims(setup: Setup, cluster: Server) -> Iterator[Row]:
    contenders: dict[str, Contender] = {
        "ours": Ours(cluster, "ours", claims),
        "many": Ours(cluster, "many", batches),
        "hand": Hand(cluster.create("hand")),
    }
    times = interleave(contenders, setup.amount(20, 8), setup.amount(1000, 300))
    rates = {name: [1 / each for each in found] for name, found in times.items()}
    hand = "one statement by hand, with a lease row and an audit row"
    yield compare(
        "claims a second", rates["ours"], hand, rates["hand"], Limit("at least", 0.8), "/s"
    )
    yield compare(
        f"the same by claim_many({BATCH})", rates["many"], hand, rates["hand"], None, "/s"
    )


def _cold(setup: Setup, cluster: Server, where: Path) -> Iterator[Row]:
    board = Ours(cluster, "cold", claims)
    rounds = setup.amount(60, 10)
    board.fill(10 * rounds)
    cache = where / "cache"
    contenders: dict[str, Contender] = {
        "bare": Python(cache, "pass"),
        "claim": Python(cache, COMMAND, "-d", board.where, "claim", "--owner", "bench"),
        "psycopg": Python(cache, "import psycopg"),
    }
    times = interleave(contenders, rounds, 1)
    bare = "python -c pass"
    yield compare(
        "the command `dibs claim` on a board of 1,000 tasks",
        times["claim"], bare, times["bare"], Limit("at most", 8),
    )  # fmt: skip
    yield compare(
        "import psycopg, for comparison: dibs does without it",
        times["psycopg"], bare, times["bare"],
    )  # fmt: skip


def _peers(setup: Setup, cluster: Server, python: Path, stack: ExitStack) -> Iterator[Row]:
    def peer(name: str, verb: str, number: int) -> Peer:
        made = cluster.create(f"{name}_{verb}_{number}")
        return Peer(python, stack, made, name, verb, number)

    contenders: dict[str, Contender] = {
        "ours": Ours(cluster, "cycles", cycles),
        "procrastinate": peer("procrastinate", "run", 1),
        "procrastinate x10": peer("procrastinate", "run", 10),
        "pgqueuer": peer("pgqueuer", "run", BATCH),
    }
    times = interleave(contenders, setup.amount(8, 3), setup.amount(2000, 500))
    rates = {name: [1 / each for each in found] for name, found in times.items()}
    for name, what in (
        ("procrastinate", "procrastinate's own worker, one job at a time"),
        ("procrastinate x10", "procrastinate's own worker, ten jobs at a time"),
        ("pgqueuer", f"pgqueuer's own worker, in batches of {BATCH}"),
    ):
        yield compare(
            "whole cycles a second: claimed, kept, done, nothing to do",
            rates["ours"], what, rates[name], Limit("at least", 1), "/s",
        )  # fmt: skip
    contenders = {
        "ours": Ours(cluster, "batches", batches),
        "pgqueuer": peer("pgqueuer", "take", BATCH),
    }
    times = interleave(contenders, setup.amount(8, 4), setup.amount(4000, 1000))
    rates = {name: [1 / each for each in found] for name, found in times.items()}
    yield compare(
        f"claims a second in batches of {BATCH}",
        rates["ours"], f"pgqueuer's dequeue of {BATCH}", rates["pgqueuer"],
        Limit("at least", 1), "/s",
    )  # fmt: skip
