"""The shell library while claims are paused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import dibs
from tests.core.library import Fleet
from tests.patience import PATIENCE
from tests.stress.running import until


def test_a_paused_board_gives_no_task_and_says_why(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.board().pause_claims('deploy "2"\x1b[31m', by="ada@web-1")
    for verb in ("next_task", "claim_task a"):
        done = fleet.run(verb)
        assert (done.returncode, done.stdout) == (4, b""), done
        assert done.stderr == b"dibs: the board is paused by ada@web-1: deploy \n"
    assert fleet.names() == ["a.available"]


def test_a_holder_goes_on_and_keeps_its_claim(fleet: Fleet) -> None:
    fleet.add("a")
    name = fleet.sh("next_task")
    fleet.board().pause_claims("deploy")
    fleet.sh("claim_task a && heartbeat && claim_task --resume a && done_task", DIBS_CLAIM=name)
    assert fleet.names()[0].startswith("done/a.f2.")


def test_a_pause_of_another_host_or_one_that_has_ended_stops_nothing(fleet: Fleet) -> None:
    fleet.add("a", "b")
    board = fleet.board()
    board.pause_claims("kernel", host="web-*")
    pause, _ = board.pause_claims("lunch", seconds=1000)
    path = fleet.path / ".paused" / pause.name
    assert pause.until is not None
    data = path.read_bytes().replace(b"%d" % pause.until, b"%d" % (pause.at - 100))
    path.write_bytes(data)
    fleet.sh("next_task", DIBS_HOST="lab-1")
    assert fleet.sh("next_task", code=4, DIBS_HOST="web-1") == ""
    assert [h.host for h in board.snapshot().holders.values()] == ["lab-1"]


@pytest.mark.parametrize("data", [b"", b"{}", b'{"v": 2}'])
def test_an_invalid_file_and_an_empty_folder_stop_nothing(fleet: Fleet, data: bytes) -> None:
    fleet.add("a", "b")
    (fleet.path / ".paused").mkdir()
    fleet.sh("next_task")
    (fleet.path / ".paused/0123456789").write_bytes(data)
    (fleet.path / ".paused/*").write_bytes(b'{"v": 1}')
    fleet.sh("next_task")


def test_a_claim_that_meets_a_pause_after_its_rename_is_requeued(fleet: Fleet) -> None:
    fleet.add("a")
    (fleet.path.parent / "staged").mkdir()
    pause, _ = fleet.board().pause_claims("deploy", by="ada")
    (fleet.path / ".paused").rename(fleet.path.parent / "staged/.paused")
    fleet.instead_of(
        "mv",
        f"""case $* in *a.available*)
  "$REAL" "$@"; code=$?
  [ ! -e '{fleet.path.parent}/staged/.paused' ] ||
    "$REAL" '{fleet.path.parent}/staged/.paused' '{fleet.path}/.paused'
  exit $code ;;
esac
exec "$REAL" "$@" """,
    )
    done = fleet.run("next_task")
    assert (done.returncode, done.stderr) == (4, b"dibs: the board is paused by ada: deploy\n"), (
        done
    )
    assert fleet.names() == ["a.f1.available"]
    board = fleet.board()
    assert board.check() == []
    board.resume_claims([pause.name])
    assert fleet.sh("next_task").startswith("a.f2.")


def test_a_loop_waits_for_the_end_of_a_pause_and_says_so_once(fleet: Fleet, tmp_path: Path) -> None:
    fleet.add("a")
    board: dibs.Board = fleet.board()
    pause, _ = board.pause_claims("deploy", by="ada")
    said = tmp_path / "said"
    with said.open("wb") as file:
        loop = subprocess.Popen(
            [
                *(shutil.which(fleet.program[0]) or "", *fleet.program[1:]),
                *("-c", f". '{fleet.library}'; process_loop true"),
            ],
            env={"PATH": fleet.commands, "DIBS_BOARD": str(fleet.path), "DIBS_POLL": "0.1"},
            stderr=file,
        )
    until(lambda: b"paused by ada" in said.read_bytes())
    assert loop.poll() is None
    board.resume_claims([pause.name])
    until(lambda: any(name.startswith("done/a.") for name in fleet.names()))
    loop.terminate()
    loop.wait(PATIENCE)
    assert said.read_bytes().count(b"paused by ada") == 1
