"""The demo's crew: real processes at work on a real board; none outlives its keeper."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

import dibs
import dibs_tui
from dibs.files.engine import FilesBoard, open_directory
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
    """The first true result of `look`."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found


def crew_of(keeper: int) -> dict[int, str]:
    """Every running process of the keeper's session, with its command line."""
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
def board(crew: Crew) -> FilesBoard:
    return open_directory(crew.path)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a crew, as the dashboard does."""
    command = [sys.executable, "-c", HOST, str(tmp_path)]
    with subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def keeper_of(host: subprocess.Popen[str]) -> int:
    assert host.stdout is not None
    keeper = int(host.stdout.readline())
    until(lambda: len(crew_of(keeper)) > len(CREW))
    return keeper


def stale(board: FilesBoard) -> set[str]:
    """The owners of the stale claims."""
    return {row.owner for row in board.entries() if row.state == "stale"}


def test_the_board_is_full_when_the_block_begins(crew: Crew, board: FilesBoard) -> None:
    assert Path(crew.path).name.startswith("dibs-demo-")
    assert len(board.snapshot().tasks) >= FIRST - 5
    assert (board.settings.ttl, board.settings.max_attempts) == (15, 5)


def test_every_worker_is_its_own_process(crew: Crew) -> None:
    until(lambda: any("worker.sh" in line for line in crew_of(crew.keeper.pid).values()))
    everybody = crew_of(crew.keeper.pid)
    assert len(everybody) > len(CREW)
    assert os.getpid() not in everybody


def test_a_shell_claims_with_mv_and_beats_a_lock(board: FilesBoard) -> None:
    def plain() -> bool:
        return any(
            f.task.is_shell_claim and f.owner == "sh-4" for f in board.snapshot().holders.values()
        )

    until(plain)


def test_the_lock_is_held_and_says_why(board: FilesBoard) -> None:
    (status,) = until(lambda: [s for s in (board.status("deploy-prod"),) if s.held])
    assert status.owner in ("deployer", "hotfixer")
    assert status.metadata


def test_tasks_get_done_by_workers_on_several_hosts(board: FilesBoard) -> None:
    until(lambda: board.snapshot().counts()["done"] >= 5)
    assert len({row.host for row in board.entries() if row.state == "claimed"}) >= 3


def test_a_crashed_worker_is_proven_dead(board: FilesBoard) -> None:
    def dead() -> bool:
        held = [h.task for h in board.snapshot().holders.values() if h.owner == "agent-7"]
        return any(board.evidence(task).verdict is dibs.Verdict.DEAD for task in held)

    until(dead)


def test_one_worker_stops_beating_and_is_left_for_an_operator(board: FilesBoard) -> None:
    until(lambda: "agent-12" in stale(board))


def test_a_stopped_worker_comes_back_and_claims_again(board: FilesBoard) -> None:
    until(lambda: "agent-9" in stale(board))
    back = until(lambda: [event for event in board.log.read() if event.verb == "resume"])
    assert back[0].by == "agent-9"


def test_a_worker_asks_a_person_and_waits_for_the_answer(board: FilesBoard) -> None:
    (row,) = until(lambda: [row for row in board.entries() if row.state == "asked"])
    assert (row.owner, row.host) == ("agent-3", "web-1")
    assert row.question.endswith("?")
    answered = board.answer(row.claim, "as you like")
    with suppress(dibs.Changed):  # a worker may have claimed it already
        board.prioritize(answered.name, 9)  # else it waits behind more than a hundred others
    until(lambda: [e for e in board.log.of(row.id) if e.verb == "claim" and e.at > 0][1:])
    assert [q.answer for q in board.questions(board.find(row.id)[0])] == ["as you like"]


def test_while_the_mail_server_is_down_mails_wait_and_their_workers_stop_burning_them(
    tmp_path: Path,
) -> None:
    seen: set[str] = set()
    with Crew(str(tmp_path)) as crew:  # its own: the server is down in the first minute
        board = open_directory(crew.path)

        def look() -> bool:
            rows = [row for row in board.entries() if row.id.startswith("mail-")]
            seen.update(waiter.state for waiter in board.waiters())
            seen.update(["later"] if sum(row.state == "later" for row in rows) >= 3 else [])
            return {"later", "broken"} <= seen

        until(look)
        fails = [e for e in board.log.read() if e.verb == "fail" and e.id.startswith("mail-")]
        assert {event.reason for event in fails} == {"smtp.example.com:25: connection refused"}


def test_a_worker_hangs_and_sends_heartbeats(board: FilesBoard) -> None:
    def hung() -> list[dibs.Entry]:
        rows = [row for row in board.entries() if row.owner == "agent-5"]
        return [row for row in rows if "tax service" in row.note and (row.progress or 0) > 12]

    (row,) = until(hung)
    assert row.id.startswith("invoice-")
    assert row.state == "claimed"
    assert (row.age or 0) < 24 / 2


def test_another_worker_replaces_the_crashed_one(board: FilesBoard) -> None:
    def claims() -> int:
        return sum(e.verb == "claim" and e.by == "agent-7" for e in board.log.read())

    until(lambda: claims() >= 2)


def test_the_board_always_has_work(board: FilesBoard) -> None:
    done = board.snapshot().counts()["done"]
    until(lambda: board.snapshot().counts()["done"] > done + 5)
    assert board.snapshot().counts()["available"] > FIRST / 2


def test_nothing_is_left_when_the_block_ends(tmp_path: Path) -> None:
    with Crew(str(tmp_path)) as crew:
        until(lambda: len(crew_of(crew.keeper.pid)) > len(CREW))
    assert not crew_of(crew.keeper.pid)
    assert not os.listdir(tmp_path)


def test_nothing_is_left_when_the_dashboard_is_killed(
    host: subprocess.Popen[str], tmp_path: Path
) -> None:
    keeper = keeper_of(host)
    host.kill()
    until(lambda: not crew_of(keeper) and not os.listdir(tmp_path))


def test_nothing_is_left_when_the_dashboard_is_killed_before_the_crew_is_ready(
    host: subprocess.Popen[str], tmp_path: Path
) -> None:
    until(lambda: os.listdir(tmp_path))
    host.kill()
    until(lambda: not os.listdir(tmp_path))


def test_signals_of_the_terminal_do_not_reach_the_crew(host: subprocess.Popen[str]) -> None:
    keeper = keeper_of(host)
    assert os.getsid(keeper) == keeper != os.getsid(host.pid)


def test_a_keeper_that_is_terminated_leaves_nothing(
    host: subprocess.Popen[str], tmp_path: Path
) -> None:
    keeper = keeper_of(host)
    os.kill(keeper, signal.SIGTERM)
    until(lambda: not crew_of(keeper) and not os.listdir(tmp_path))


def test_workers_end_even_when_their_keeper_is_killed(tmp_path: Path) -> None:
    with Crew(str(tmp_path)) as crew:
        until(lambda: len(crew_of(crew.keeper.pid)) > len(CREW))
        crew.keeper.kill()
        until(lambda: not crew_of(crew.keeper.pid))
    assert not os.listdir(tmp_path)


def test_the_error_says_what_to_do_when_no_board_can_be_created(tmp_path: Path) -> None:
    with pytest.raises(dibs.StorageError, match="set TMPDIR to a writable directory"):
        Crew(str(tmp_path / "missing")).__enter__()


def test_a_worker_imports_nothing_of_the_dashboard() -> None:
    code = "import sys, dibs_tui.demo.keeper; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], env=ENV, text=True).split()
    assert "dibs_tui.demo.roles" in loaded
    assert not {"textual", "rich", "watchfiles", "humanize"} & set(loaded)
