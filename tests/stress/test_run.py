"""`dibs run`: how the end of a command ends its claim, and that no process outlives a claim."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.stress.running import Site, alive, ended, events, marked, site, until

OUTPUT = 10 << 20


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        yield found


def test_a_successful_command_commits_its_claim(place: Site) -> None:
    place.board.add("a")
    assert ended(place.run("--", "true"), 0) == (b"", b"")
    assert place.state("a").state == "done"
    said = f"dibs: nothing to claim on {place.board.location.label}\n".encode()
    assert ended(place.run("--", "true"), 4) == (b"", said)


def test_a_command_that_fails_leaves_its_code_and_its_last_line_as_the_reason(place: Site) -> None:
    place.board.add("a")
    run = place.run("--", "sh", "-c", "echo first >&2; echo last words >&2; echo; exit 7")
    assert ended(run, 7) == (b"\n", b"first\nlast words\n")
    assert place.state("a").name == "a.f1a1.available"
    assert place.reasons("a", "fail") == ["exit 7: last words"]


def test_a_command_that_a_signal_kills_has_the_exit_code_of_a_shell(place: Site) -> None:
    place.board.add("a")
    ended(place.run("--", "sh", "-c", "kill -SEGV $$"), 128 + signal.SIGSEGV)
    assert place.reasons("a", "fail") == ["killed by SIGSEGV"]


def test_a_command_that_cannot_start_costs_no_attempt(place: Site) -> None:
    place.board.add("a")
    (place.notes / "flat").write_text("echo no right to run")
    for command in ("no-such-command", str(place.notes / "flat"), str(place.notes)):
        _, err = ended(place.run("--", command), 2)
        assert len(err.splitlines()) == 1
    assert place.state("a").name == "a.f3.available"


def test_an_id_that_no_environment_can_hold_fails_and_does_not_stop_the_next(
    place: Site,
) -> None:
    place.board.add("a\0b")
    ended(place.run("--", "true"), 2)
    assert place.state("a\0b").attempts == 1


def test_the_command_gets_its_claim_in_its_environment(place: Site) -> None:
    place.board.add("a/b", b"what to do")
    program = (
        "names = ('ID', 'CLAIM', 'FENCE', 'DIR')\n"
        "print([os.environ[f'DIBS_{n}'] for n in names], open(os.environ['DIBS_PAYLOAD']).read())"
    )
    out, _ = ended(place.run("--owner", "me", *place.python(program)), 0)
    claim = place.state("a/b").stem
    assert out.decode() == f"{['a/b', claim, '1', str(place.path)]} what to do\n"


def test_both_outputs_pass_through_unchanged(place: Site) -> None:
    place.board.add("a")
    program = (
        "data = bytes(range(256)) * 40960\n"
        "import threading\n"
        "both = [threading.Thread(target=s.buffer.write, args=(data,))\n"
        "        for s in (sys.stdout, sys.stderr)]\n"
        "[t.start() for t in both]; [t.join() for t in both]\n"
    )
    out, err = ended(place.run("--ttl", "2", *place.python(program)), 0)
    wanted = hashlib.sha256(bytes(range(256)) * 40960).hexdigest()
    assert (len(out), len(err)) == (OUTPUT, OUTPUT)
    assert [hashlib.sha256(data).hexdigest() for data in (out, err)] == [wanted, wanted]


def test_the_command_gets_the_standard_input(place: Site) -> None:
    place.board.add("a")
    run = place.run("--", "cat", stdin=subprocess.PIPE)
    out, _ = run.communicate(b"\0\xffthrough", timeout=PATIENCE)
    assert (run.returncode, out) == (0, b"\0\xffthrough")


def test_a_slow_reader_of_the_errors_gets_all_of_them_after_the_commit(place: Site) -> None:
    place.board.add("a")
    run = place.run(*place.python("os.write(2, b'x' * 100_000)"))
    until(lambda: place.state("a").state == "done")
    assert run.poll() is None
    _, err = ended(run, 0)
    assert err == b"x" * 100_000


def test_a_run_with_unread_errors_ends_on_a_signal(place: Site) -> None:
    place.board.add("a")
    run = place.run(*place.python("os.write(2, b'x' * 100_000)"))
    until(lambda: place.state("a").state == "done")
    run.send_signal(signal.SIGTERM)
    assert run.wait(PATIENCE) == 143


def test_errors_into_a_nonblocking_pipe_are_passed_on_completely(place: Site) -> None:
    place.board.add("a")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    run = place.run(*place.python("os.write(2, b'x' * 300_000)"), stderr=writer)
    until(lambda: not select.select([], [writer], [], 0)[1])  # the pipe is full
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"x" * 300_000
    ended(run, 0)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_with_closed_streams_works(place: Site, closed: str) -> None:
    place.board.add("a")
    line = f'"$@" {closed}'
    own = [sys.executable, "-m", "dibs", "-d", str(place.path), "run", "--", "sh", "-c", "exit 0"]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "core")}
    done = subprocess.run(
        ["sh", "-c", line, "sh", *own], env=env, timeout=PATIENCE, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert place.state("a").state == "done"


def test_a_command_notices_that_the_reader_of_its_errors_left(place: Site) -> None:
    place.board.add("a")
    program = "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: os.write(2, b'x' * 65536)"
    run = place.run(*place.python(program))
    assert run.stderr is not None
    run.stderr.read(1 << 16)
    run.stderr.close()
    assert run.wait(PATIENCE) == 128 + signal.SIGPIPE


def test_unread_errors_do_not_stop_the_renewal_of_the_lease(place: Site) -> None:
    place.board.add("a")
    program = "note('up')\nos.write(2, b'x' * 300_000)\nnote('written')"
    run = place.run("--ttl", "1", "--log-json", *place.python(program))
    place.pid("up")
    _outlast(place, "a", 2)
    _, err = ended(run, 0)
    assert events(err.replace(b"x", b""))[-1]["event"] == "done"


def test_the_lease_is_kept_while_the_command_works(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "1", *place.python("note('up')\nsys.stdin.read()"), stdin=-1)
    place.pid("up")
    _outlast(place, "a", 2.5)
    ended(run, 0)
    assert place.state("a").fence == 1


def _outlast(place: Site, ident: str, seconds: float) -> None:
    """Assert that a janitor finds the claim alive during this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert place.board.reap().tasks == ()
        time.sleep(0.1)
    assert place.state(ident).state == "claimed"


WAITS = "while not os.path.exists(f'{notes}/child'): time.sleep(0.01)\n"
IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
CHILDREN = {
    "ignores SIGTERM": IGNORES,
    "forks": "if os.fork(): os.wait()\n",
    "forks and forks": "for _ in range(4): os.fork()\n",
    "closes its streams": "os.closerange(0, 64)\n",
    "calls setsid": "if os.fork(): os.wait()\nos.setsid()\n",
    "calls setsid and ignores": f"if os.fork(): os.wait()\nos.setsid()\n{IGNORES}",
    "is stopped": "note('child')\nos.kill(os.getpid(), signal.SIGSTOP)\n",
}


@pytest.mark.parametrize("what", CHILDREN)
def test_whatever_a_child_does_it_is_ended_before_the_claim(place: Site, what: str) -> None:
    place.board.add("a")
    program = CHILDREN[what] + "note('child')\nwhile True: time.sleep(60)"
    run = place.run("--ttl", "2", *place.python(program))
    child = place.pid("child")
    claim = place.state("a").stem
    assert child in marked(claim)
    run.send_signal(signal.SIGTERM)
    until(lambda: not place.state("a").live)
    assert marked(claim) == set()
    ended(run, 143)
    assert place.state("a").name == "a.f1.available"
    assert not alive(child)


@pytest.mark.parametrize("more", ["", "os.setsid()\n", f"os.setsid()\n{IGNORES}"])
def test_a_daemon_that_a_command_leaves_behind_is_ended_before_the_commit(
    place: Site, more: str
) -> None:
    place.board.add("a")
    program = (
        f"if os.fork():\n  {WAITS}  os._exit(0)\n{more}note('child')\nwhile True: time.sleep(60)"
    )
    run = place.run("--ttl", "2", *place.python(program))
    child = place.pid("child")
    until(lambda: not place.state("a").live)
    assert not alive(child)
    ended(run, 0)
    assert place.state("a").state == "done"


def test_work_that_a_command_left_behind_is_ended_before_the_commit(place: Site) -> None:
    place.board.add("a")
    program = (
        "if os.fork(): os._exit(0)\n"
        "signal.signal(signal.SIGTERM, lambda *_: (note('asked'), os._exit(0)))\n"
        "note('child')\nwhile True: time.sleep(60)"
    )
    shell = place.python(program)[1:]
    run = place.run("--", "sh", "-c", f'"$@"; while ! [ -e {place.notes}/child ]; do :; done', "sh",
                    *shell)  # fmt: skip
    ended(run, 0)
    assert int(place.note("asked")) == place.pid("child")
    assert place.state("a").state == "done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_to_a_run_stops_the_work_and_releases_the_claim(
    place: Site, number: signal.Signals
) -> None:
    place.board.add("a")
    run = place.run(*place.python("note('child')\ntime.sleep(60)"))
    child = place.pid("child")
    run.send_signal(number)
    ended(run, 128 + number)
    assert not alive(child)
    assert place.state("a").name == "a.f1.available"
    assert place.reasons("a", "release") == [f"dibs run was ended by {number.name}"]


def test_a_service_manager_that_signals_all_processes_costs_no_attempt(place: Site) -> None:
    place.board.add("a")
    for fence in range(1, 6):
        run = place.run(*place.python("note('child')\ntime.sleep(60)"))
        child = place.pid("child")
        (place.notes / "child").unlink()
        for pid in (child, run.pid):
            os.kill(pid, signal.SIGTERM)
        ended(run, 143)
        assert place.state("a").name == f"a.f{fence}.available"


def test_work_that_was_finished_before_the_signal_is_committed(place: Site) -> None:
    place.board.add("a")
    program = "command = os.getpid()\nif os.fork(): os._exit(0)\n"
    program += "while os.getppid() == command: time.sleep(0.001)\nnote('left')\ntime.sleep(60)"
    run = place.run("--ttl", "20", *place.python(IGNORES + program))
    place.pid("left")
    run.send_signal(signal.SIGTERM)  # while its leftover processes are being ended
    ended(run, 143)
    assert place.state("a").state == "done"


def test_a_signal_that_is_ignored_as_under_nohup_stays_ignored(place: Site) -> None:
    place.board.add("a")
    program = "note('child')\nwhile not os.path.exists(f'{notes}/go'): time.sleep(0.01)"
    run = place.run(
        *place.python(program), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    place.pid("child")
    run.send_signal(signal.SIGHUP)
    (place.notes / "go").touch()
    ended(run, 0)


def test_a_waiting_run_ends_on_a_signal(place: Site) -> None:
    run = place.run("--wait", "--log-json", "--", "true")
    assert run.stderr is not None
    assert events(run.stderr.readline())[0]["event"] == "waiting"
    run.send_signal(signal.SIGTERM)
    ended(run, 143)


def test_two_runs_of_one_owner_are_two_owners(place: Site) -> None:
    place.board.add("a")
    first = place.run("a", "--owner", "me", *place.python("note('up')\nsys.stdin.read()"), stdin=-1)
    place.pid("up")
    _, err = ended(place.run("a", "--owner", "me", "--", "true"), 4)
    assert b"held by 'me'" in err
    ended(first, 0)
    assert place.state("a").fence == 1
