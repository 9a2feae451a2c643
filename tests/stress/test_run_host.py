"""`dibs run` and its host: descriptors, threads, pid namespaces, and stops at a bad moment."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.stress.running import DIBS, ENV, Site, alive, ended, events, site, until

PATCHED = "import os, signal, subprocess, sys\nfrom dibs.cli import main\n"
"""A `dibs` with a change that provokes a rare case."""
MAIN = "raise SystemExit(main(sys.argv[1:]))\n"
NO_THREADS = (
    "from dibs.run.{module} import {name}\n"
    'def start(self): raise RuntimeError("can\'t start new thread")\n'
    "{name}.start = start\n"
)
STOPPED = (
    "from dibs.run.guard import Guard\n"
    "watch = Guard.watch\n"
    "def stopped(self, work, lease):\n"
    "    watch(self, work, lease)\n"
    "    os.kill(os.getpid(), signal.SIGSTOP)\n"
    "    subprocess.Popen = None\n"  # any start from now on is too late
    "Guard.watch = stopped\n"
)
LOOKING = (
    "from dibs.run import group\n"
    "look, looks = group.look, []\n"
    "def stopped(work):\n"
    "    looks.append(found := look(work))\n"
    "    if len(looks) == 3: os.kill(os.getpid(), signal.SIGSTOP)\n"
    "    return found\n"
    "group.look = stopped\n"
)
UNKILLABLE = (
    "from dibs.run import group\n"
    "group._send = lambda *_: None\n"
    "from dibs.run.guard import Guard\n"
    "Guard.watch = lambda *_: None\n"
)
"""It is as if every process waited for a dead mount: no signal ends it."""
APART = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        yield found


def patched(place: Site, patch: str, *argv: str) -> subprocess.Popen[bytes]:
    """Start a run with a change to its program."""
    return place.run(*argv, dibs=(sys.executable, "-c", PATCHED + patch + MAIN))


def test_the_command_inherits_the_descriptors_of_the_run(place: Site) -> None:
    place.board.add("a")
    reader, writer = os.pipe()
    run = place.run(*place.python(f"os.write({writer}, b'through')"), pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"through"
    ended(run, 0)


def test_a_run_with_more_descriptors_than_select_supports_works(place: Site) -> None:
    place.board.add("a")
    program = (
        "import os, resource, sys\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
        "for _ in range(1100): os.set_inheritable(os.dup(0), True)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    own = [*DIBS, "-d", str(place.path), "run", "--", "true"]
    command = [sys.executable, "-c", program, *own]
    done = subprocess.run(command, env=ENV, timeout=PATIENCE, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("module", "name"), [("reporting", "Pump"), ("keeper", "Keeper")])
def test_a_run_that_cannot_start_threads_releases_the_claim(
    place: Site, module: str, name: str
) -> None:
    place.board.add("a")
    run = patched(place, NO_THREADS.format(module=module, name=name), *place.python("note('up')"))
    _, err = ended(run, 2)
    assert err.startswith(b"dibs: dibs run could not start a part of it: ")
    assert len(err.splitlines()) == 1
    assert not (place.notes / "up").exists()
    assert place.state("a").name == "a.f1.available"


def test_a_run_that_cannot_start_its_guard_blames_the_interpreter_and_not_the_command(
    place: Site,
) -> None:
    place.board.add("a")
    absent = str(place.notes / "python")
    run = patched(place, f"sys.executable = {absent!r}\n", *place.python("note('up')"))
    _, err = ended(run, 2)
    assert err.decode() == (
        f"dibs: dibs run could not start {absent}: No such file or directory: "
        "the command was not started; fix this and try again\n"
    )
    assert not (place.notes / "up").exists()
    assert place.state("a").name == "a.f1.available"


def test_an_empty_command_is_a_usage_error_before_anything_is_claimed(place: Site) -> None:
    place.board.add("a")
    _, err = ended(place.run("--", ""), 2)
    assert b"CMD is empty: give the command after --" in err
    assert place.state("a").name == "a.available"


def test_a_run_that_was_stopped_past_its_lease_does_not_start_the_command(
    place: Site,
) -> None:
    place.board.add("a")
    run = patched(place, STOPPED, "--ttl", "1", "--log-json", "--", "true")
    until(lambda: Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    (given,) = until(lambda: place.board.reap().tasks)
    run.send_signal(signal.SIGCONT)
    _, err = ended(run, 5)
    assert events(err)[-1]["event"] in ("lost", "uncertain")
    assert place.state("a") == given


def test_a_run_that_was_stopped_while_it_looked_for_processes_looks_again(place: Site) -> None:
    place.board.add("a")
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    left = "if not os.fork():\n  note('up')\n  time.sleep(60)\n"
    waits = "while not os.path.exists(f'{notes}/up'): time.sleep(0.01)\n"
    run = patched(place, LOOKING, "--ttl", "2", *place.python(stubborn + left + waits))
    child = place.pid("up")
    until(lambda: place.board.reap().tasks)
    assert not alive(child)
    run.send_signal(signal.SIGCONT)
    _, err = ended(run, 5)
    assert b"cannot be ended" not in err


def test_a_run_whose_work_does_not_end_stops_renewing_and_ends_with_its_lease(
    place: Site,
) -> None:
    place.board.add("a")
    program = "if os.fork():\n    while not os.path.exists(f'{notes}/up'): time.sleep(0.01)\n"
    program += "    os._exit(0)\nos.closerange(0, 3)\nnote('up')\ntime.sleep(60)"
    run = patched(place, UNKILLABLE, "--ttl", "3", "--log-json", *place.python(program))
    left = place.pid("up")
    _, err = ended(run, 5)
    assert alive(left)
    assert f"these processes cannot be ended: {left} (".encode() in err
    assert events(err)[-1]["event"] == "uncertain"
    assert place.state("a").live, "it expires, and is not claimed while the work runs"


@pytest.fixture
def apart() -> tuple[str, ...]:
    """The command that starts a pid namespace."""
    if shutil.which("unshare") is None or subprocess.run([*APART, "true"]).returncode:
        pytest.skip("A PID NAMESPACE WAS NOT TRIED: unshare is not allowed here")
    return APART


def test_the_first_process_of_a_container_reaps_the_zombies_of_its_commands(
    place: Site, apart: tuple[str, ...]
) -> None:
    place.board.add("a")
    program = (
        "for _ in range(8):\n"
        "    if not os.fork():\n"
        "        if os.fork(): os._exit(0)\n"
        "        time.sleep(0.05)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "def states():\n"
        "    for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "        yield open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0]\n"
        "time.sleep(0.2)\n"
        "while 'Z' in states(): time.sleep(0.01)\n"
    )
    first = (*apart, "--mount-proc", *DIBS)
    run = place.run(*place.python(program), dibs=first)
    ended(run, 0)


def test_a_proc_of_another_pid_namespace_is_refused(place: Site, apart: tuple[str, ...]) -> None:
    place.board.add("a")
    _, err = ended(place.run("--", "true", dibs=(*apart, *DIBS)), 1)
    assert b"/proc" in err
    assert place.state("a").name == "a.available"
