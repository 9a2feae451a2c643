"""`dibs run` on a terminal: the command gets the keyboard, and its end returns it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.stress.running import DIBS, ENV, Site, alive, site, until

SLOW = """\
import os, sys, time
from dibs.cli import main
from dibs.run.terminal import Terminal
lend = Terminal.lend
def slow(self, pid):
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.005)
    return lend(self, pid)
Terminal.lend = slow
raise SystemExit(main(sys.argv[2:]))
"""
"""A `dibs` that lends the terminal only when a given file exists."""
ASKED = """\
signal.signal(signal.SIGINT, lambda *_: (note('asked', 'once'), os._exit(130)))
print('up', flush=True)
time.sleep(60)
"""
"""A command that notes ctrl+c and ends."""


class Screen:
    """A run in its own session on a pseudo-terminal, with a parent that acts as its shell."""

    def __init__(self, place: Site, *argv: str, dibs: Sequence[str] = DIBS) -> None:
        self.seen = b""
        self.keys, tty = os.openpty()
        self.modes = termios.tcgetattr(tty)
        self.shell = os.fork()
        if not self.shell:
            try:
                self._be_shell(tty, [*dibs, "-d", str(place.path), "run", *argv], place.notes)
            finally:
                os._exit(99)
        os.close(tty)
        self.run = place.pid("run")

    def _be_shell(self, tty: int, command: list[str], notes: Path) -> None:
        """Start the job in the foreground as a shell does; wait for a line whenever it stops."""
        os.setsid()
        fcntl.ioctl(tty, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(tty, fd)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if not job:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execvpe(command[0], command, ENV)
        (notes / ".run").write_text(str(job))
        (notes / ".run").rename(notes / "run")
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            os.tcsetpgrp(0, os.getpgrp())
            front = termios.tcgetattr(0)[3] & termios.ECHO
            if not os.WIFSTOPPED(status):
                break
            os.write(1, f"shell: stopped, echo {bool(front)}\n".encode())
            os.read(0, 4096)
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        code = os.waitstatus_to_exitcode(status)
        code = code if code >= 0 else 128 - code
        os.write(1, f"shell: {code}, echo {bool(front)}\n".encode())
        os.read(0, 4096)
        os._exit(0)

    def wait(self, text: str) -> None:
        """Read until the text is on the screen."""
        end = time.monotonic() + PATIENCE
        while text.encode() not in self.seen:
            left = end - time.monotonic()
            assert left > 0, self.seen
            if select.select([self.keys], [], [], left)[0]:
                self.seen += os.read(self.keys, 4096)
        self.seen = self.seen.partition(text.encode())[2]

    def type(self, keys: bytes) -> None:
        os.write(self.keys, keys)

    def end(self) -> None:
        for pid in (self.shell, self.run):
            with suppress(ProcessLookupError):  # the end of the first may end the second
                os.kill(pid, signal.SIGKILL)
        os.waitpid(self.shell, 0)
        os.close(self.keys)


def interrupted(place: Site, screen: Screen) -> None:
    """Assert that the command got ctrl+c and the claim was released."""
    screen.wait("shell: 130")
    assert place.note("asked") == "once"
    assert place.state("a").name == "a.f1.available"
    assert place.reasons("a", "release") == ["interrupted from the keyboard"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        found.board.add("a")
        yield found


@pytest.fixture
def screens() -> Iterator[list[Screen]]:
    found: list[Screen] = []
    yield found
    for screen in found:
        screen.end()


def test_the_command_reads_the_keyboard_in_the_foreground(
    place: Site, screens: list[Screen]
) -> None:
    program = (
        "assert os.tcgetpgrp(0) == os.getpgrp() != os.getsid(0)\n"
        "print('all', all(map(os.isatty, range(3))))\nprint('got ' + input())"
    )
    screens.append(screen := Screen(place, "--ttl", "1", *place.python(program)))
    screen.wait("dibs: acquired a.f1.")
    screen.wait("all True")
    time.sleep(1.2)  # beats do not take the keyboard away
    screen.type(b"hello\n")
    screen.wait("got hello")
    screen.wait("dibs: done a.f1.")
    screen.wait("shell: 0")
    assert place.state("a").state == "done"


def test_ctrl_c_interrupts_the_command_and_releases_the_claim(
    place: Site, screens: list[Screen]
) -> None:
    screens.append(screen := Screen(place, "--loop", *place.python(ASKED)))
    screen.wait("up")
    screen.type(b"\x03")
    interrupted(place, screen)


def test_ctrl_c_on_a_command_that_dies_of_it(place: Site, screens: list[Screen]) -> None:
    # Not `sh -c "…; sleep 60"`: dash drops a SIGINT that comes between its vfork and the exec.
    program = (
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\nprint('up', flush=True)\ntime.sleep(60)"
    )
    screens.append(screen := Screen(place, *place.python(program)))
    screen.wait("up")
    screen.type(b"\x03")
    screen.wait("shell: 130")
    assert place.state("a").name == "a.f1.available"


def test_ctrl_c_before_the_command_has_the_terminal_is_passed_on_to_it(
    place: Site, screens: list[Screen]
) -> None:
    lend = place.notes / "lend"
    slow = (sys.executable, "-c", SLOW, str(lend))
    screens.append(screen := Screen(place, "--loop", *place.python(ASKED), dibs=slow))
    screen.wait("up")
    screen.type(b"\x03")
    screen.wait("^C")  # the terminal shows it when the signal was sent
    lend.touch()
    interrupted(place, screen)


@pytest.mark.parametrize("after", [0.0, 0.002, 0.005, 0.01, 0.02, 0.04])
def test_ctrl_c_while_a_command_starts_reaches_the_run_or_the_command(
    place: Site, screens: list[Screen], after: float
) -> None:
    screens.append(screen := Screen(place, "--", "sleep", "60"))
    screen.wait("dibs: acquired a.f1.")
    time.sleep(after)  # the terminal changes hands about now
    screen.type(b"\x03")
    screen.wait("shell: 130")
    assert place.state("a").name == "a.f1.available"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_ctrl_c_also_ends_the_script_that_started_it(
    place: Site, screens: list[Screen], shell: str
) -> None:
    script = (shell, "-c", 'for _ in 1 2; do "$@"; done; echo went on', "sh", *DIBS)
    program = (
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\nprint('up', flush=True)\nsignal.pause()"
    )
    screens.append(screen := Screen(place, *place.python(program), dibs=script))
    screen.wait("up")
    screen.type(b"\x03")
    screen.wait("shell: 130")
    assert place.state("a").name == "a.f1.available"


def test_a_hangup_of_the_foreground_command_ends_the_run_and_costs_no_attempt(
    place: Site, screens: list[Screen]
) -> None:
    screens.append(screen := Screen(place, "--loop", *place.python("note('up')\nsignal.pause()")))
    place.pid("up")
    until(lambda: os.tcgetpgrp(screen.keys) not in (screen.run, screen.shell))
    os.kill(screen.shell, signal.SIGKILL)  # the kernel signals only the foreground
    until(lambda: not alive(screen.run))
    assert place.state("a").name == "a.f1.available"
    assert place.reasons("a", "release") == ["the terminal hung up"]


def test_ctrl_c_while_waiting_ends_the_run(place: Site, screens: list[Screen]) -> None:
    place.board.park("a.available", "not now")
    screens.append(screen := Screen(place, "--wait", "--", "true"))
    screen.wait("dibs: waiting")
    screen.type(b"\x03")
    screen.wait("shell: 130")


def test_ctrl_z_stops_command_and_run_until_they_are_continued(
    place: Site, screens: list[Screen]
) -> None:
    program = (
        "import termios\nmodes = termios.tcgetattr(0)\n"
        "modes[3] &= ~termios.ECHO\ntermios.tcsetattr(0, termios.TCSANOW, modes)\n"
        "note('child')\nprint('up', flush=True)\nprint('got ' + input())"
    )
    screens.append(screen := Screen(place, "--ttl", "20", *place.python(program)))
    child = place.pid("child")
    screen.wait("up")
    screen.type(b"\x1a")
    screen.wait("shell: stopped, echo True")
    for pid in (child, screen.run):
        until(lambda pid=pid: _state(pid) == "T")  # type: ignore[misc]
    screen.type(b"fg\n")
    until(lambda: _state(child) != "T")
    screen.type(b"again\n")
    screen.wait("got again")
    screen.wait("shell: 0")
    assert place.state("a").state == "done"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_z_also_stops_commands_without_the_terminal(
    place: Site, screens: list[Screen], jobs: str
) -> None:
    place.board.add("b")
    program = "note(os.environ['DIBS_ID'])\nwhile True: time.sleep(60)"
    # Standard input is no terminal, so another command of the pipeline may need the keyboard.
    pipeline = ("sh", "-c", 'exec "$@" < /dev/null', "sh", *DIBS)
    screens.append(screen := Screen(place, "--jobs", jobs, *place.python(program), dibs=pipeline))
    children = [place.pid(name) for name in "ab"[: int(jobs)]]
    assert os.tcgetpgrp(screen.keys) == screen.run
    screen.type(b"\x1a")
    screen.wait("shell: stopped")
    for pid in (*children, screen.run):
        until(lambda pid=pid: _state(pid) == "T")  # type: ignore[misc]
    screen.type(b"fg\n")
    for pid in (*children, screen.run):
        until(lambda pid=pid: _state(pid) != "T")  # type: ignore[misc]
    screen.type(b"\x03")
    screen.wait("shell: 130")
    assert not any(map(alive, children))
    assert place.state("a").name == "a.f1.available"


def test_another_reader_of_the_keyboard_in_the_pipeline_can_read_it(
    place: Site, screens: list[Screen]
) -> None:
    late = f"while ! [ -e {place.notes}/up ]; do sleep 0.1; done; sleep 0.2; head -n 1 /dev/tty"
    pipeline = ("sh", "-c", f'({late}) | "$@"', "sh", *DIBS)
    program = "note('up')\nprint('got ' + input(), flush=True)"
    screens.append(screen := Screen(place, *place.python(program), dibs=pipeline))
    place.pid("up")
    screen.type(b"hello\n")
    screen.wait("got hello")
    screen.wait("shell: 0")


def test_a_command_in_a_pipeline_that_needs_the_keyboard_gets_it(
    place: Site, screens: list[Screen]
) -> None:
    pipeline = ("sh", "-c", '"$@" | cat', "sh", *DIBS)
    program = "note('up')\nprint('got ' + open('/dev/tty').readline(), flush=True)"
    screens.append(screen := Screen(place, *place.python(program), dibs=pipeline))
    place.pid("up")
    screen.type(b"hello\n")
    screen.wait("got hello")
    screen.wait("shell: 0")


def test_a_stop_that_outlasts_the_lease_ends_the_work(place: Site, screens: list[Screen]) -> None:
    screens.append(
        screen := Screen(place, "--ttl", "1", *place.python("note('child')\ntime.sleep(60)"))
    )
    child = place.pid("child")
    screen.type(b"\x1a")
    screen.wait("shell: stopped")
    over = time.monotonic() + 1  # no heartbeat can have been later than the stop
    until(lambda: not alive(child) and time.monotonic() > over)
    screen.type(b"fg\n")
    screen.wait("shell: 5")


def test_the_terminal_is_restored_when_the_command_dies_with_it_raw(
    place: Site, screens: list[Screen]
) -> None:
    program = "import tty\ntty.setraw(0)\nnote('child')\nos.kill(os.getpid(), signal.SIGKILL)"
    screens.append(screen := Screen(place, *place.python(program)))
    screen.wait("shell: 137, echo True")


def test_a_run_that_gets_a_signal_returns_the_terminal(place: Site, screens: list[Screen]) -> None:
    program = "import tty\ntty.setraw(0)\nnote('child')\ntime.sleep(60)"
    screens.append(screen := Screen(place, *place.python(program)))
    place.pid("child")
    os.kill(screen.run, signal.SIGTERM)
    screen.wait("shell: 143, echo True")
    assert place.state("a").name == "a.f1.available"


def _state(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]
