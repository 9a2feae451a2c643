"""The demo's crew: real processes at work on a real board, none of which outlives its keeper."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

import dibs
import dibs_tui
from dibs_tui.demo.crew import Crew
from dibs_tui.demo.keeper import CREW
from dibs_tui.demo.roles import FIRST
from tests.patience import PATIENCE

ROOTS = [str(Path(package.__path__[0]).parent) for package in (dibs, dibs_tui)]
ENV = os.environ | {"PYTHONPATH": os.pathsep.join(ROOTS)}
HOST = """
import sys, time
from dibs_tui.demo.crew import Crew
with Crew(sys.argv[1]) as crew:
    print(crew.keeper.pid, flush=True)
    time.sleep(60)
"""
Found = TypeVar("Found")


def until(look: Callable[[], Found]) -> Found:
    """What is found as soon as it is there."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found


def crew_of(keeper: int) -> dict[int, str]:
    """Every process of the keeper's session that runs, with its command line."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == keeper and fields[0] not in (b"Z", b"X"):
                found[int(path.name)] = (path / "cmdline").read_text()
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    with Crew(str(tmp_path_factory.mktemp("crew"))) as crew:
        yield crew


@pytest.fixture(scope="module")
def board(crew: Crew) -> dibs.Board:
    return dibs.open(crew.path)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has entered a crew, as the dashboard does."""
    command = [sys.executable, "-c", HOST, str(tmp_path)]
    with subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def keeper_of(host: subprocess.Popen[str]) -> int:
    assert host.stdout is not None
    keeper = int(host.stdout.readline())
    until(lambda: len(crew_of(keeper)) > len(CREW))
    return keeper


def stale(board: dibs.Board) -> set[str]:
    """The owners of what fell silent."""
    return {row.owner for row in board.entries() if row.state == "stale"}


def test_the_board_is_full_as_soon_as_the_block_is_entered(crew: Crew, board: dibs.Board) -> None:
    assert Path(crew.path).name.startswith("dibs-demo-")
    assert len(board.snapshot().tasks) >= FIRST - 5
    assert (board.settings.ttl, board.settings.max_attempts) == (15, 3)


def test_everybody_is_a_process_of_their_own(crew: Crew) -> None:
    until(lambda: any("worker.sh" in line for line in crew_of(crew.keeper.pid).values()))
    everybody = crew_of(crew.keeper.pid)
    assert len(everybody) > len(CREW)
    assert os.getpid() not in everybody


def test_a_plain_shell_claims_with_mv_and_beats_a_lock(board: dibs.Board) -> None:
    def plain() -> bool:
        return any(f.task.plain and f.owner == "sh-4" for f in board.snapshot().facts.values())

    until(plain)


def test_the_lock_is_held_and_says_for_what(board: dibs.Board) -> None:
    (status,) = until(lambda: [s for s in (board.status("deploy-prod"),) if s.held])
    assert status.owner in ("deployer", "hotfixer")
    assert status.metadata


def test_tasks_get_done_by_workers_on_several_hosts(board: dibs.Board) -> None:
    until(lambda: board.snapshot().counts()["done"] >= 5)
    assert len({row.host for row in board.entries() if row.state == "claimed"}) >= 3


def test_a_crashed_worker_is_dead_by_proof(board: dibs.Board) -> None:
    def dead() -> bool:
        facts = [f for f in board.snapshot().facts.values() if f.owner == "agent-7"]
        return any(board.judge(f) is dibs.Verdict.DEAD for f in facts)

    until(dead)


def test_one_falls_silent_and_is_left_for_an_operator(board: dibs.Board) -> None:
    until(lambda: "agent-12" in stale(board))


def test_a_stopped_worker_comes_back_and_takes_its_claim_anew(board: dibs.Board) -> None:
    until(lambda: "agent-9" in stale(board))
    back = until(lambda: [event for event in board.journal.read() if event.verb == "resume"])
    assert back[0].by == "agent-9"


def test_somebody_takes_the_place_of_the_one_who_crashed(board: dibs.Board) -> None:
    def claims() -> int:
        return sum(e.verb == "claim" and e.by == "agent-7" for e in board.journal.read())

    until(lambda: claims() >= 2)


def test_the_board_does_not_run_dry(board: dibs.Board) -> None:
    done = board.snapshot().counts()["done"]
    until(lambda: board.snapshot().counts()["done"] > done + 5)
    assert board.snapshot().counts()["available"] > FIRST / 2


def test_nothing_is_left_when_the_block_ends(tmp_path: Path) -> None:
    with Crew(str(tmp_path)) as crew:
        until(lambda: len(crew_of(crew.keeper.pid)) > len(CREW))
    assert not crew_of(crew.keeper.pid)
    assert not os.listdir(tmp_path)


def test_nothing_is_left_when_the_dashboard_was_killed(
    host: subprocess.Popen[str], tmp_path: Path
) -> None:
    keeper = keeper_of(host)
    host.kill()
    until(lambda: not crew_of(keeper) and not os.listdir(tmp_path))


def test_nothing_is_left_where_the_dashboard_was_killed_before_the_crew_was_ready(
    host: subprocess.Popen[str], tmp_path: Path
) -> None:
    until(lambda: os.listdir(tmp_path))
    host.kill()
    until(lambda: not os.listdir(tmp_path))


def test_signals_of_the_terminal_are_not_for_the_crew(host: subprocess.Popen[str]) -> None:
    keeper = keeper_of(host)
    assert os.getsid(keeper) == keeper != os.getsid(host.pid)


def test_a_keeper_that_is_told_to_end_leaves_nothing(
    host: subprocess.Popen[str], tmp_path: Path
) -> None:
    keeper = keeper_of(host)
    os.kill(keeper, signal.SIGTERM)
    until(lambda: not crew_of(keeper) and not os.listdir(tmp_path))


def test_workers_end_even_where_their_keeper_is_killed(tmp_path: Path) -> None:
    with Crew(str(tmp_path)) as crew:
        until(lambda: len(crew_of(crew.keeper.pid)) > len(CREW))
        crew.keeper.kill()
        until(lambda: not crew_of(crew.keeper.pid))
    assert not os.listdir(tmp_path)


def test_where_no_board_can_be_made_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(dibs.StorageError, match="set TMPDIR to a directory with some room"):
        Crew(str(tmp_path / "missing")).__enter__()


def test_a_worker_loads_nothing_of_the_dashboard() -> None:
    code = "import sys, dibs_tui.demo.keeper; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], env=ENV, text=True).split()
    assert "dibs_tui.demo.roles" in loaded
    assert not {"textual", "rich", "watchfiles", "humanize"} & set(loaded)
