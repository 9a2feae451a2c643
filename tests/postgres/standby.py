"""A streaming standby of a private server, which can be promoted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from tests.filesystems.remote import await_
from tests.postgres.cluster import USER, Server, given

NAME = "standby"


class Standby(Server):
    """A copy of a primary that follows it; `through` is a port on which to reach the primary."""

    def __init__(self, primary: Server, *, through: int = 0, name: str = NAME) -> None:
        super().__init__(durable=True, tcp=True)
        self._primary = primary
        self._through = through
        self._name = name

    def make(self) -> None:
        """Copy the primary as it is now."""
        self.data.mkdir(mode=0o700)
        shutil.rmtree(self.data)
        given(self.data)
        where = f"host={self._primary.folder} port={self._primary.port}"
        if self._through:
            where = f"host=127.0.0.1 port={self._through}"
        source = (
            f"{where} user={USER} application_name={self._name} sslmode=disable gssencmode=disable"
        )
        self.run(
            "pg_basebackup",
            *(f"--dbname={source}", f"--pgdata={self.data}", "--checkpoint=fast", "--no-sync"),
            *("--wal-method=stream", "--write-recovery-conf"),
        )

    def follows(self) -> bool:
        """Whether it has all that the primary has written."""
        found = self._primary.sql(
            "SELECT replay_lsn >= pg_current_wal_lsn() FROM pg_stat_replication"
            f" WHERE application_name = '{self._name}'"
        )
        return found == [(True,)]

    def until_it_follows(self) -> None:
        """Wait for that."""
        await_(self.follows, "the standby does not follow the primary")

    def promote(self) -> None:
        """Make it the primary, and wait until it can be written."""
        assert self.sql("SELECT pg_promote(true, 60)") == [(True,)]
        assert self.sql("SELECT pg_is_in_recovery()") == [(False,)]


def make_synchronous(primary: Server) -> None:
    """From now on a commit returns only when the standby has it."""
    primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
    primary.sql("SELECT pg_reload_conf()")
    shown = "SHOW synchronous_standby_names"
    await_(lambda: primary.sql(shown) == [(NAME,)], "the setting is not read")


@contextmanager
def standby(primary: Server, *, through: int = 0, name: str = NAME) -> Iterator[Standby]:
    """A standby for as long as the block lasts."""
    found = Standby(primary, through=through, name=name)
    with found:
        found.until_it_follows()
        yield found
