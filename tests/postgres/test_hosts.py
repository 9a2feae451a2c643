"""An address with several hosts: a silent one costs its share of the time, and no more."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import dibs
from dibs.model.sample import SECOND
from dibs.postgres import hosts
from dibs.postgres.hosts import ServerHost, _targets
from dibs.postgres.libpq import Connection, understood
from tests.contract.command import Command
from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.proxy import Proxy
from tests.postgres.server import Place
from tests.postgres.test_steps import session_of


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a host that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found.getsockname()[1]


@pytest.fixture
def alive(shared_server: Server) -> Iterator[Proxy]:
    with Proxy(shared_server.socket) as found:
        yield found


def address(site: Site, *ports: int, options: str = "") -> str:
    several = ",".join(f"127.0.0.1:{port}" for port in ports)
    return f"postgresql://dibs@{several}/{site.database}{options}"


@pytest.mark.parametrize("options", ["", "?target_session_attrs=prefer-standby"])
def test_a_silent_host_is_passed_over_and_is_tried_last_from_then_on(
    site: Site, alive: Proxy, silent: int, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "CONNECT", 2.0)
    where = address(site, silent, alive.port, options=options)
    assert dibs.open(where).add("a").name == "a.available"
    first, last = hosts._order[where]
    assert (first.port, last.port) == (str(alive.port), str(silent))
    with monkeypatch.context() as soon:
        soon.setattr(hosts, "CONNECT", 0.5)
        assert dibs.open(where).find("a"), "it waits for the silent host again"


def test_the_timeout_of_the_address_is_for_each_host(
    site: Site, alive: Proxy, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def noted(options: Mapping[str, str], seconds: float) -> Connection:
        waited.append(seconds)
        return Connection(options, seconds)

    monkeypatch.setattr(hosts, "Connection", noted)
    where = address(site, silent, silent, alive.port, options="?connect_timeout=1")
    assert dibs.open(where).add("a").name == "a.available"
    assert [round(seconds, 1) for seconds in waited] == [1.0, 1.0, 1.0]
    with pytest.raises(dibs.StorageError, match="did not answer in time"):
        dibs.open(address(site, silent, options="?connect_timeout=1"))
    assert round(waited[-1], 1) == 1.0


def test_a_fleet_that_runs_goes_on_with_the_other_host_when_one_falls_silent(
    site: Site, shared_server: Server, alive: Proxy
) -> None:
    with Proxy(shared_server.socket) as falls:
        board = dibs.open(address(site, falls.port, alive.port))
        session_of(board).patience = 4 * SECOND
        board.add("a")
        claim = board.claim("a")
        assert claim is not None
        assert (falls.connections, alive.connections) == (1, 0)
        falls.stall()
        claim.beat()
        assert claim.done().state == "done"
        assert board.add("b").name == "b.available"
        assert falls.connections == 1, "the silent host is tried before the one that answers"
    assert [event.verb for event in site.board.log.of("a")] == ["add", "claim", "done"]


def test_if_no_host_answers_one_line_says_so_for_each(site: Site, silent: int) -> None:
    where = address(site, silent, 1, options="?connect_timeout=1")
    done = Command(where).run("ls")
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert f"127.0.0.1, port {silent} did not answer in time; " in line
    assert "Connection refused" in line
    assert line.endswith("start the server, or check the address")


def test_the_hosts_are_those_that_the_library_would_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(where: str) -> list[ServerHost]:
        return _targets(understood({"dbname": where}))

    assert found("postgresql://a@one,two:7/db") == [
        ServerHost("one", "", "5432"),
        ServerHost("two", "", "7"),
    ]
    assert found("postgresql://a@one,two/db?port=7") == [
        ServerHost("one", "", "7"),
        ServerHost("two", "", "7"),
    ]
    assert found("postgresql:///db?hostaddr=10.0.0.1,10.0.0.2&port=,6") == [
        ServerHost("", "10.0.0.1", "5432"),
        ServerHost("", "10.0.0.2", "6"),
    ]
    for alone in (
        "postgresql://a@one/db",
        "postgresql:///db",
        "postgresql://a@one:1,two:2/db?port=1,2,3",
    ):
        assert found(alone) == [ServerHost()], alone
    monkeypatch.setenv("PGHOST", "one,two")
    assert [each.host for each in found("postgresql:///db")] == ["one", "two"]
    monkeypatch.delenv("PGHOST")
    (tmp_path / "services").write_text("[both]\nhost=127.0.0.1,::1\nport=1,2\ndbname=db\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    assert [each.port for each in found("postgresql:///?service=both")] == ["1", "2"]


def test_what_a_role_has_by_default_changes_no_step(place: Place) -> None:
    server, role = place.server, "unusual"
    server.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
    try:
        for setting in (
            "default_transaction_isolation = 'repeatable read'",
            "default_transaction_read_only = on",
        ):
            server.execute(f"ALTER ROLE {role} SET {setting}")
        where = place.where.replace("dibs@", f"{role}@")
        for options in ("", "&target_session_attrs=read-write"):
            board = dibs.open(where + options)
            session = session_of(board)
            shown = session.row(
                "SELECT current_setting('transaction_isolation'), "
                "current_setting('transaction_read_only')"
            )
            assert shown == ("read committed", "off")
        assert board.add("a").name == "a.available"
        assert dibs.board.upgrade(where) is False
    finally:
        server.execute(f"DROP ROLE {role}")


def test_a_step_with_another_isolation_level_is_refused(place: Place) -> None:
    place.board.add("a")
    session = session_of(place.board)
    session.rows("SELECT set_config('default_transaction_isolation', 'serializable', false)")
    for act in (place.board.claim, lambda: place.board.add("b")):
        with pytest.raises(dibs.StorageError, match="needs the isolation level read committed"):
            act()
    session.close()
    assert place.board.claim() is not None
