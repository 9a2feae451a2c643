"""A real server process on a board of its own, and its tokens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dibs
from dibs.serve.tokens import FOLDER, Role, Tokens
from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient

ENV = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
_FETCHED = """
import runpy, dibs.serve.http_server as server
server._FETCHED = {}
runpy.run_module("dibs", run_name="__main__")
"""


def run_dibs(board: Path, *words: str) -> str:
    """What a verb prints."""
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "-d", str(board), *words],
        env=ENV,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout


def add_token(board: Path, name: str, role: str = "worker", prefix: str = "") -> str:
    """A new token."""
    return Tokens(str(board / FOLDER)).add(name, Role[role.upper()], prefix)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A new certificate for this machine, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made += ["-keyout", str(key), "-out", str(cert), "-days", "2"]
    subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE)
    return cert, key


class ServerProcess:
    """`dibs serve` on a board, on any free port."""

    def __init__(
        self,
        board: Path,
        *words: str,
        listen: str = "127.0.0.1:0",
        more: Mapping[str, str] | None = None,
        where: str = "",
        fetched: float | None = None,
    ) -> None:
        """`more` are variables of its environment.

        With `where` the board is a database, and only the tokens are in the directory. `fetched`
        are the seconds after which a claim is released whose answer no one has asked for again.
        """
        if where:
            words = ("--tokens", str(board / FOLDER), *words)
        elif not board.exists():
            dibs.open(board, create=True)
        start = ["-m", "dibs"]
        if fetched is not None:
            start = ["-c", _FETCHED.format(fetched)]
        self.board = board
        self.where = where or str(board)
        """The address of the board."""
        self.log = board.parent / f"{board.name}.serve.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    *start,
                    "-d",
                    self.where,
                    "serve",
                    "--listen",
                    listen,
                    *list(words),
                ],
                env={**ENV, **(more or {})},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http"), self.log.read_text()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.url.rpartition(":")[2])

    def client(self, name: str, role: str = "worker", agent: str | None = None) -> HttpClient:
        """A client with a new token."""
        return HttpClient(self.url, add_token(self.board, name, role), agent)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """It stands still in the block, as if its machine had been suspended."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        """End it as an operator does; its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code
