"""One verb in a separate process, in which `strace` breaks exactly one system call.

The verb runs in a fork of this process, which has already imported dibs, so that a run costs a few
milliseconds. `strace` counts calls per name from the moment it attaches; the recorded trace of an
unbroken run gives the number of the call to break.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from dibs import cli
from dibs.cli import act, care, look, produce, refusal, work
from tests.patience import PATIENCE
from tests.stress.syscalls.later import Later

LOADED = (act, care, look, produce, refusal, work)
"""Modules that verbs import lazily: imported here, so that no fault hits an import."""
_BLANKS = (
    (re.compile(r"(?<=[.\-/])[0-9A-F]{10}(?=[.\"/>]|$)"), "NONCE"),
    (re.compile(r'""\.\.\., [0-9]+\)'), "DATA)"),
    (re.compile(r"0x[0-9a-f]+|\{[^{}]*\}|[0-9]+(?=</)"), "…"),
)
_paths = re.compile(r'"/[^"]*"|<(?!unfinished)[^>]*>').findall
_match_call = re.compile(r"([a-z0-9_]+)\(").match


_LOOKS = {
    *("newfstatat", "fstat", "lstat", "stat", "statx", "access", "faccessat", "readlink"),
    *("getdents64", "pread64", "read", "lseek", "fcntl", "ioctl", "close", "fsync"),
}


class Call(NamedTuple):
    """One system call as `strace` saw it."""

    name: str
    number: int
    """Its number among the calls of its name, from 1."""
    text: str
    """The arguments without the parts that differ between runs."""
    injected: bool

    @property
    def same(self) -> tuple[str, ...]:
        """The part that is equal in two runs of a verb: the call and its paths, not its result."""
        return (self.name, *_paths(self.text.rpartition(") = ")[0]))

    @property
    def changes(self) -> bool:
        """Whether the names or the content on the disk may differ after it."""
        return self.name not in _LOOKS and "O_RDONLY" not in self.text


class Fault(NamedTuple):
    """What happens instead of a call."""

    name: str
    text: str
    """The expression for `strace --inject`."""
    times: int = 1
    """How often: once, twice in succession, or with 0 for this and every later call."""


KILL = Fault("KILL", "error=EIO:signal=KILL")
ERRORS = tuple(Fault(code, f"error={code}") for code in ("ENOSPC", "EIO", "EACCES", "ESTALE"))
TWICE = (Fault("EIO twice", "error=EIO", 2),)
DEAD = tuple(Fault(f"{code} from then on", f"error={code}", 0) for code in ("EIO", "EROFS"))
_OUTLIVE = {"write", "close", "read", "lseek", "ioctl", "fcntl", "dup", "poll"}
"""Calls that Python also makes for itself: such a call fails once, the others permanently."""


class Run(NamedTuple):
    """The result of one verb."""

    code: int | None
    """None if it was killed."""
    out: str
    err: str
    calls: list[Call]
    """The calls on the board, in order."""


class Untraceable(Exception):
    """`strace` did not work, so nothing was tested."""


def why_not() -> str:
    """Why nothing can be traced here; empty if tracing works."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], capture_output=True)
    return f"strace cannot trace: {done.stderr.decode().strip()}" if done.returncode else ""


def faults_at(calls: Sequence[Call], at: int, fault: Fault) -> list[str]:
    """The `--inject` expressions that break a given call of a recorded trace."""
    call = calls[at]
    if fault.times:
        last = call.number + (fault.times - 1) * (call.name not in _OUTLIVE)
        return [f"inject={call.name}:{fault.text}:when={call.number}..{last}"]
    when = {call.name: f"{call.number}"} if call.name in _OUTLIVE else {}
    for later in calls[at:]:
        if later.name not in _OUTLIVE:
            when.setdefault(later.name, f"{later.number}+")
    return [f"inject={name}:{fault.text}:when={numbers}" for name, numbers in when.items()]


def run(board: Path, argv: Sequence[str], late: float, faults: Sequence[str] | None = ()) -> Run:
    """Run a verb on a board, as `late` seconds from now, with these faults; None: untraced."""
    log, out, err = (board.parent / f"{kind}.{board.name}" for kind in ("log", "out", "err"))
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()
        _become(partial(_verb, ["-d", str(board), *argv], late), there, out, err)
    there.close()
    here.settimeout(PATIENCE)
    strace = None
    try:
        here.recv(1)
        if faults is not None:
            strace = _attach(child, log, faults)
        here.send(b"!")
        here.recv(1)  # returns nothing: the child's end closes the other side
    except BaseException as error:
        os.kill(child, signal.SIGKILL)
        raise Untraceable(f"{argv} with {faults}: {error!r}") from error
    finally:
        here.close()
        status = os.waitpid(child, 0)[1]
        if strace is not None:
            strace.communicate()
    code = os.waitstatus_to_exitcode(status)
    done = Run(
        None if code == -signal.SIGKILL else code,
        out.read_text(errors="replace"),
        err.read_text(errors="replace"),
        [] if faults is None else _calls(log, str(board)),
    )
    for file in (log, out, err):
        file.unlink(missing_ok=True)
    return done


def _attach(child: int, log: Path, faults: Sequence[str]) -> subprocess.Popen[str]:
    broken = [option for fault in faults for option in ("-e", fault)]
    options = ("-y", "-s", "0", "-e", "trace=%file,%desc", "-o", str(log))
    strace = subprocess.Popen(
        ["strace", "-p", str(child), *options, *broken],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert strace.stderr is not None
    line = strace.stderr.readline()
    if "attached" not in line:
        raise Untraceable(f"strace cannot attach: {line}{strace.communicate()[1]}")
    return strace


def _become(verb: Callable[[], int], parent: socket.socket, out: Path, err: Path) -> None:
    """Run as the forked child; never returns."""
    code = 99
    try:
        for file, fd in ((out, 1), (err, 2)):
            opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, fd)
            os.close(opened)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        parent.send(b"?")
        if parent.recv(1):
            code = verb()
            sys.stdout.flush()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 98
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stderr.flush()
        finally:
            os._exit(code)


def _verb(argv: list[str], late: float) -> int:
    with patch("dibs.files.engine.Disk", partial(Later, seconds=late)):
        return cli.main(argv)


def _calls(log: Path, board: str) -> list[Call]:
    calls = []
    count: Counter[str] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        m = _match_call(line)
        if m is None:
            continue
        count[m[1]] += 1
        if board in line:
            text = line.replace(board, "")
            for pattern, blank in _BLANKS:
                text = pattern.sub(blank, text)
            injected = line.endswith(("(INJECTED)", " = ?"))
            calls.append(Call(m[1], count[m[1]], re.sub(r"\) +=", ") =", text), injected))
    return calls
