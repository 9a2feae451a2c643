"""PgBouncer in transaction mode before a private server."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.filesystems.remote import await_, free_port
from tests.patience import PATIENCE
from tests.postgres.cluster import USER, Server, as_servant, end_with_starter, given

_PATH = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"


def why_not() -> str:
    """Why none can be started here; empty if it can."""
    return "" if shutil.which("pgbouncer", path=_PATH) else "pgbouncer is not installed"


class Pooler:
    """A pooler that gives a server's connection for one transaction at a time."""

    def __init__(self, server: Server, size: int = 3) -> None:
        self._server = server
        self.port = free_port()
        self._folder = given(server.folder / f"pooler-{self.port}")
        self._size = size
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = shutil.which("pgbouncer", path=_PATH)
        assert program is not None
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            f"""\
[databases]
* = host={self._server.folder} port={self._server.port} user={USER}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {self._size}
max_client_conn = 200
server_lifetime = 5
logfile = {self._folder / "log"}
pidfile =
"""
        )
        settings.chmod(0o644)
        self._process = subprocess.Popen(
            [program, "-q", settings],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_starter,
            **as_servant(),
        )
        process = self._process
        await_(lambda: self._answers() or process.poll() is not None, "pgbouncer does not answer")
        assert process.poll() is None, (self._folder / "log").read_text()

    def _answers(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(self.url("postgres"), prepare_threshold=None, autocommit=True):
                return True
        except psycopg.OperationalError:
            return False

    def url(self, database: str) -> str:
        """The address of a database behind it."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def end(self) -> None:
        """End it in any state."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(PATIENCE)
            self._process = None


@contextmanager
def pooler(server: Server, size: int = 3) -> Iterator[Pooler]:
    """A pooler for as long as the block lasts."""
    found = Pooler(server, size)
    try:
        found.start()
        yield found
    finally:
        found.end()
