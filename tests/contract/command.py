"""The command `dibs -d BOARD …`, in this process or as a separate one."""

from __future__ import annotations

import gc
import io
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path

from dibs.board import locate
from dibs.cli import main
from dibs.host import this_host
from tests.patience import PATIENCE

CORE = Path(__file__).parents[2] / "core"
PROCESSES = {"run", "serve", "watch", "mcp", "setup", "--notify", "--probe", "--peer"}
"""Words of command lines that start programs, serve, or change the process: never run in this."""


class Command:
    """Runs `dibs -d BOARD …`."""

    def __init__(self, where: str, *, process: bool = False) -> None:
        self.where = where
        self.process = process
        """Whether each is a separate process, also where that makes no difference."""
        self.env = os.environ | {"PYTHONPATH": str(CORE), "USER": "tester"}

    @property
    def named(self) -> str:
        """The beginning of each command that a message quotes."""
        return shlex.join(("dibs", *locate(self.where).command_line_args))

    def __call__(self, *argv: str, code: int = 0) -> str:
        """Run it and return its output; checks the exit code and that stderr is one line.

        Each command that a message quotes has to name the board; it is returned without that.
        """
        done = self.run(*argv)
        assert done.returncode == code, done
        message = done.stderr.decode("utf-8", "surrogateescape")
        assert "Traceback" not in message
        assert len(message.splitlines()) <= 1, message
        if code in (1, 2, 3, 5):
            assert message.startswith("dibs: ")
        printed = done.stdout.decode("utf-8", "surrogateescape")
        for line in (printed + message).split("\n"):
            assert line.isprintable(), line
        assert self.runnable(message) == message
        message = message.replace(self.runnable("`dibs ls").removesuffix("ls"), "`dibs ")
        return (printed if code in (0, 4, 6) else message).rstrip("\n")

    def runnable(self, text: str) -> str:
        """A text in which each command of dibs names the board."""
        return locate(self.where).runnable(text)

    def run(self, *argv: str, process: bool = False) -> subprocess.CompletedProcess[bytes]:
        """Run it and return what it printed; as a separate process only if that matters.

        Starting Python takes ten times as long as most verbs. `process` is for tests of streams,
        signals, exits or the start itself. Whatever starts programs or serves is a process anyway.
        """
        return self._run(b"", argv, process)

    def run_with(
        self, text: str, *argv: str, process: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        """The same with a text on standard input."""
        return self._run(text.encode(), argv, process)

    def _run(
        self, given: bytes, argv: Sequence[str], process: bool
    ) -> subprocess.CompletedProcess[bytes]:
        line = ["-d", self.where, *argv]
        return call(line, self.env, given=given, process=process or self.process)


def call(
    line: Sequence[str],
    env: Mapping[str, str],
    *,
    given: bytes = b"",
    cwd: str | os.PathLike[str] | None = None,
    process: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run `dibs` with arguments, an environment, a standard input and a folder.

    A process has one environment, so only the main thread does it in this process.
    """
    alone = threading.current_thread() is threading.main_thread()
    if process or not alone or PROCESSES & {*line}:
        command = [sys.executable, "-m", "dibs", *line]
        return subprocess.run(
            command, input=given, capture_output=True, env=env, cwd=cwd, timeout=PATIENCE
        )
    with (
        standard_streams(given) as streams,
        environment(env),
        chdir(cwd or os.curdir),
    ):
        code = main(line)
    return subprocess.CompletedProcess(list(line), code, *streams())


@contextmanager
def standard_streams(given: bytes) -> Iterator[Callable[[], tuple[bytes, bytes]]]:
    """Standard streams in memory; the value of the block returns what was printed to both."""
    raw = io.BytesIO(), io.BytesIO()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8", errors="surrogateescape")
    sys.stdout, sys.stderr = (io.TextIOWrapper(stream, encoding="utf-8") for stream in raw)
    written = sys.stdout, sys.stderr

    def printed() -> tuple[bytes, bytes]:
        for stream in written:
            stream.flush()
        return raw[0].getvalue(), raw[1].getvalue()

    try:
        yield printed
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        gc.unfreeze()  # else nothing that is alive now would ever be collected


@contextmanager
def environment(env: Mapping[str, str]) -> Iterator[None]:
    """Exactly these variables, as a process would have them, also for who this is."""
    before = dict(os.environ)
    forget = this_host.cache_clear

    def use(variables: Mapping[str, str]) -> None:
        os.environ.clear()
        os.environ.update(variables)
        forget()

    use(env)
    try:
        yield
    finally:
        use(before)
