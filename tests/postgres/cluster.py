"""A private PostgreSQL server: its own cluster, a socket in its own folder, ended by its pid.

python -m tests.postgres.cluster            start one, print its address, and end it with Ctrl+C
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.core.conftest import fast
from tests.core.tools import NOBODY
from tests.filesystems.remote import await_, free_port
from tests.patience import PATIENCE
from tests.stress.running import alive

USER = "dibs"
"""The superuser of each cluster."""
QUICK = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""For tests that kill no server."""
_USUAL = {
    "autovacuum_naptime": "5s",
    "listen_addresses": "",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %d ",
    "max_connections": "60",
    "max_wal_senders": "4",
    "shared_buffers": "64MB",
    "wal_level": "replica",
}
_DIE_WITH_PARENT = 1
_PORT = 5432
_FOLDERS = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql*/bin")


@cache
def programs() -> str:
    """The folder of the server's programs; empty if they are not installed."""
    if found := shutil.which("initdb"):
        return os.path.dirname(os.path.realpath(found))  # a link may stand there without the others
    if os.environ.get("DIBS_TEST_BARE"):
        return ""
    folders = sorted(path for pattern in _FOLDERS for path in Path("/").glob(pattern))
    good = [str(path) for path in folders if (path / "initdb").exists()]
    return good[-1] if good else ""


def why_not() -> str:
    """Why no server can be started here; empty if it can."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    return "" if programs() else "no server is installed"


@cache
def as_servant() -> Mapping[str, Any]:
    """How to start a program that refuses to be root."""
    if os.geteuid():
        return {}
    uid = NOBODY
    with suppress(KeyError):
        uid = pwd.getpwnam("postgres").pw_uid
    return {"user": uid, "group": uid, "extra_groups": []}


def given(folder: Path) -> Path:
    """A new folder that such a program owns."""
    folder.mkdir(mode=0o700)
    give(folder)
    return folder


def give(folder: Path) -> None:
    """Let such a program own a folder."""
    if servant := as_servant():
        os.chown(folder, servant["user"], servant["group"])


def end_with_starter() -> None:
    """In the child: a server whose tests were killed shuts down at once."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGQUIT)


class Server:
    """One cluster. A `durable` one flushes each commit; `password`: it asks for it, on TCP too."""

    def __init__(
        self,
        *,
        durable: bool = False,
        tcp: bool = False,
        password: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=fast()))
        """With its socket; the path of that may have 107 bytes."""
        self.folder.chmod(0o755)
        give(self.folder)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port = free_port() if tcp else _PORT
        self.password = password
        self._settings = {**_USUAL, **({} if durable else QUICK), **(settings or {})}
        if tcp:
            self._settings["listen_addresses"] = "127.0.0.1"
        self._process: subprocess.Popen[bytes] | None = None
        self._frozen = False

    def __enter__(self) -> Server:
        try:
            self.make()
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def make(self) -> None:
        """Create the cluster."""
        given(self.data)
        method = "scram-sha-256" if self.password else "trust"
        command = ["--no-sync", f"--username={USER}", f"--auth={method}", "--encoding=UTF8"]
        said = given(self.folder / "said")
        if self.password:
            (said / "password").write_text(self.password)
            (said / "password").chmod(0o644)
            command.append(f"--pwfile={said / 'password'}")
        self.run("initdb", *command, "--locale=C", f"--pgdata={self.data}")

    def run(self, name: str, *argv: str | Path) -> str:
        """Run one of the server's programs to its end."""
        command = [f"{programs()}/{name}", *argv]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd="/", timeout=PATIENCE, **as_servant()
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        said_all: str = done.stdout
        return said_all

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert self._process is None, "it runs already"
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        path = f"{programs()}/postgres"
        command = [path, f"-D{self.data}", f"-k{self.folder}", f"-p{self.port}", *options]
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd="/",
                preexec_fn=end_with_starter,
                **as_servant(),
            )
        process = self._process
        await_(lambda: self.answers() or process.poll() is not None, f"no answer: see {self.log}")
        assert process.poll() is None, f"it did not start:\n{self.log.read_text()[-4000:]}"

    def answers(self) -> bool:
        """Whether it accepts connections; also a standby and a server with passwords say so."""
        command = [f"{programs()}/pg_isready", "-q", f"-h{self.folder}", f"-p{self.port}", "-t1"]
        return subprocess.run(command, timeout=PATIENCE).returncode == 0

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    def stop(self, how: str = "fast") -> None:
        """Stop it: `smart`, `fast`, or `immediate` as after a crash."""
        numbers = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        self._end(numbers[how])

    def kill(self) -> None:
        """End it and its processes with SIGKILL, as a machine that loses its power."""
        os.kill(self.pid, signal.SIGSTOP)  # so that it starts no other one meanwhile
        helpers = self._helpers()
        self._end(signal.SIGKILL, *helpers)
        # The next start is refused while one of them still has the shared memory.
        await_(lambda: not any(alive(pid) for pid in helpers), "a process of it does not end")

    def freeze(self) -> None:
        """Stop all its processes: it accepts connections and never answers, as a machine that
        hangs."""
        for pid in (self.pid, *self._helpers()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        """Let all its processes go on."""
        self._frozen = False
        for pid in (*self._helpers(), self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _helpers(self) -> list[int]:
        found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(pid) for pid in found]

    def _end(self, number: signal.Signals, *others: int) -> None:
        assert self._process is not None, "it does not run"
        for pid in (self._process.pid, *others):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        self._process.wait(PATIENCE)
        self._process = None
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def restart(self, how: str = "immediate") -> None:
        """The same as `pg_ctl restart -m`."""
        self.stop(how)
        self.start()

    def end(self) -> None:
        """End it in any state, and remove it."""
        if self._process is not None and self._frozen:
            self.kill()
        elif self._process is not None:
            self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return str(self.folder / f".s.PGSQL.{self.port}")

    def url(self, database: str = "postgres", *, user: str = USER, password: str = "") -> str:
        """The address of a database, by the socket."""
        secret = f":{quote(password, safe='')}" if password else ""
        port = f"&port={self.port}" if self.port != _PORT else ""
        where = f"{quote(database, safe='')}?host={self.folder}{port}"
        return f"postgresql://{user}{secret}@/{where}"

    def tcp_url(self, database: str = "postgres", *, user: str = USER, password: str = "") -> str:
        """The address of a database on the loopback."""
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def sql(self, query: str, *given: object, database: str = "postgres") -> list[Any]:
        """The rows of a statement, in a connection of its own."""
        return self.each((query,), *given, database=database)[0]

    def each(
        self, queries: Iterable[str], *given: object, database: str = "postgres"
    ) -> list[list[Any]]:
        """The rows of each of these statements, in one connection."""
        import psycopg

        where = self.url(database, password=self.password)
        with psycopg.connect(where, autocommit=True, connect_timeout=10) as connection:
            done = [connection.execute(query.encode(), given or None) for query in queries]
            return [each.fetchall() if each.description else [] for each in done]

    def create(self, database: str) -> str:
        """A new, empty database; returns its address."""
        self.sql(f'CREATE DATABASE "{database}" TEMPLATE template0')
        return self.url(database)


@contextmanager
def server(**how: Any) -> Iterator[Server]:
    """A server for as long as the block lasts."""
    with Server(**how) as found:
        yield found


def main(argv: Sequence[str]) -> int:
    with Server(durable="--durable" in argv) as found:
        print(found.create("board"), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
