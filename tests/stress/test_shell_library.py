"""Shells with the library and Python workers on one board at once."""

import multiprocessing
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

from dibs.files.engine import FilesBoard, open_directory
from dibs.model.names import read_ended
from dibs.model.settings import Settings, dump
from tests.stress.library import LIBRARY, programs
from tests.stress.running import until

TASKS = 200
HANDLER = 'h() { printf "%s %s\\n" "$DIBS_ID" "$DIBS_CLAIM" >> "$LEDGER"; }'


def board_in(where: Path, **settings: object) -> FilesBoard:
    fields = {"durability": "off", "ttl": 30} | settings
    (where / "board/.dibs").mkdir(parents=True)
    (where / "board/.dibs/board.toml").write_bytes(dump(Settings(**fields)))  # type: ignore[arg-type]
    return open_directory(where / "board", create=True)


def loop(
    where: Path, program: list[str], script: str, owner: str, **env: str
) -> subprocess.Popen[bytes]:
    variables = {"DIBS_DIR": str(where / "board"), "DIBS_OWNER": owner, "LEDGER": f"{where}/log"}
    return subprocess.Popen(
        [*program, "-c", f". '{LIBRARY}'\n{script}"],
        env=os.environ | variables | env,
        start_new_session=True,
    )


def work(where: Path, owner: str) -> None:
    """Work as a Python worker, at the pace of a shell."""
    board = open_directory(where / "board")
    fd = os.open(where / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    while claim := board.claim(owner=owner):
        os.write(fd, f"{claim.id} {claim.name}\n".encode())
        time.sleep(0.03)
        claim.done()


def test_shells_and_python_workers_finish_each_task_once(tmp_path: Path) -> None:
    board = board_in(tmp_path)
    ids = [f"task-{n}" for n in range(TASKS)]
    for n, ident in enumerate(ids):
        board.add(ident, b"x", priority=n % 3 + 4)
    shells = (programs() * 2)[:2]
    loops = [
        loop(tmp_path, p, f"{HANDLER}; process_loop h", f"shell-{n}") for n, p in enumerate(shells)
    ]
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=work, args=(tmp_path, f"python-{n}")) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert [one.wait(120) for one in loops] == [0, 0]
    done = [read_ended("done", name) for name in os.listdir(board.location.where + "/done")]
    finished = [task for task in done if task is not None]
    assert Counter(task.id for task in finished) == Counter(ids)
    assert {task.fence for task in finished} == {1}
    assert {task.owner for task in finished} == {"shell-0", "shell-1", "python-0", "python-1"}
    logged = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(logged) == sorted([task.id, task.stem] for task in finished)
    events = board.log.read()
    assert Counter(e.id for e in events if e.verb == "done") == Counter(ids)
    assert board.check() == []


def test_one_loop_takes_over_what_a_killed_one_held(tmp_path: Path) -> None:
    board = board_in(tmp_path, ttl=1)
    board.add("task", b"x")
    first, second = (programs() * 2)[:2]
    victim = loop(tmp_path, first, "process_loop sleep 60", "victim")
    until(lambda: list((tmp_path / "board").glob("*.claimed")))
    time.sleep(0.5)
    os.killpg(victim.pid, signal.SIGKILL)
    victim.wait()
    script = f"{HANDLER}; process_loop h"
    heir = loop(tmp_path, second, script, "heir", DIBS_POLL="0.2")
    try:
        until(lambda: os.listdir(board.location.where + "/done"))
    finally:
        os.killpg(heir.pid, signal.SIGKILL)
        heir.wait()
    (name,) = os.listdir(board.location.where + "/done")
    assert name.startswith("task.f2a1.heir-")
    assert [e.verb for e in board.log.read("task")][:4] == ["add", "claim", "reap", "claim"]
