"""What cannot be opened is refused on one line that says what to do, and shows no password."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import dibs
from dibs.board import initialize, upgrade
from dibs.postgres.addresses import hidden, shown
from dibs.postgres.sessions import FORMAT
from tests.contract.command import CORE, Command
from tests.patience import PATIENCE
from tests.postgres.server import Place, Server

SECRET = "s3cr:t@/x"
QUOTED = "s3cr%3At%40%2Fx"


def with_password(server: Server, database: str, user: str = "dibs") -> str:
    return f"postgresql://{user}:{QUOTED}@/{database}?host={server.folder}"


@pytest.mark.fast("dibs.postgres")
@pytest.mark.parametrize(
    ("where", "label"),
    [
        ("postgresql://ann@h/db", "postgresql://ann@h/db"),
        ("postgresql://ann:pw@h/db", "postgresql://ann@h/db"),
        ("postgres://ann:p@w:x@h:5/db", "postgres://ann@h:5/db"),
        ("postgresql://:pw@h/db", "postgresql://@h/db"),
        ("postgresql://h/db?user=a&password=p&w&port=1", "postgresql://h/db?user=a&port=1"),
        ("postgresql://a:pw@h1:1,h2:2/db?sslPassword=x", "postgresql://a@h1:1,h2:2/db"),
    ],
)  # fmt: skip
def test_a_location_is_shown_without_its_passwords(where: str, label: str) -> None:
    assert shown(where) == label
    assert dibs.board.locate(where).label == label


@pytest.mark.fast("dibs.postgres")
def test_a_message_of_the_server_loses_the_password_and_every_line_but_the_first() -> None:
    where = f"postgresql://ann:{QUOTED}@h/db"
    assert hidden(f"\nbad {SECRET} or {QUOTED}\nmore", where) == "bad *** or ***"


def test_a_database_that_is_no_board_says_how_to_make_it_one(server: Server) -> None:
    with pytest.raises(dibs.BoardMissing, match=r"is no board: `dibs -d .*postgresql://.* init`"):
        dibs.open(server.where("postgres"))


def test_a_database_that_does_not_exist_says_how_to_make_it(server: Server) -> None:
    with pytest.raises(dibs.BoardMissing, match="createdb"):
        dibs.open(server.where("nothing"))


def test_a_server_that_is_not_there_is_an_error_at_once(server: Server) -> None:
    with pytest.raises(dibs.StorageError, match="start the server, or check the address"):
        dibs.open(f"postgresql://dibs@/x?host={server.folder}/none")


def test_a_location_without_a_database_is_bad_input(server: Server) -> None:
    with pytest.raises(dibs.BadName, match="names no database"):
        dibs.open("postgresql://")
    with pytest.raises(dibs.BadName, match="give it as postgresql://"):
        dibs.open("postgresql://h/db?nonsense=1")


def test_a_newer_format_is_refused_and_an_older_one_is_brought_up_to_date(place: Place) -> None:
    def set_to(number: int) -> None:
        place.server.execute(
            f"UPDATE dibs.meta SET value = '{number}' WHERE key = 'format'", place.database
        )

    try:
        set_to(FORMAT + 1)
        for opening in (dibs.open, initialize, upgrade):
            with pytest.raises(dibs.NewerFormat, match="update dibs"):
                opening(place.where)
        set_to(0)
        with pytest.raises(dibs.OlderFormat, match="`dibs upgrade`"):
            dibs.open(place.where)
        assert upgrade(place.where) is True
        assert upgrade(place.where) is False
        dibs.open(place.where).add("a")
    finally:
        set_to(FORMAT)


def test_two_that_make_a_board_at_once_make_one(server: Server) -> None:
    server.execute("CREATE DATABASE twice")
    code = "import sys; from dibs.board import initialize; initialize(sys.argv[1])"
    command = [sys.executable, "-c", code, server.where("twice")]
    env = os.environ | {"PYTHONPATH": str(CORE)}
    many = [subprocess.Popen(command, env=env) for _ in range(4)]
    assert [each.wait(PATIENCE) for each in many] == [0] * 4
    board, unfit = initialize(server.where("twice"))
    assert board.add("a").name == "a.available"
    assert "fsync is off" in unfit
    del board
    server.execute("DROP DATABASE twice WITH (FORCE)")


def test_a_missing_package_is_named_with_what_installs_it(command: Command) -> None:
    code = """
import ctypes, sys
from dibs.cli import main

def missing(*given): raise OSError("not there")

ctypes.CDLL = missing
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "-d", command.where, "ls"],
        env=command.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2, done
    assert "[postgres]'`, or your system's package of libpq" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_password_is_refused_and_a_right_one_is_never_shown(place: Place) -> None:
    server = place.server
    server.execute(f"CREATE ROLE walled LOGIN SUPERUSER PASSWORD '{SECRET}'")
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    try:
        rules.write_text(f"local all walled scram-sha-256\n{before}")
        server.execute("SELECT pg_reload_conf()")
        where = with_password(server, place.database, "walled")
        with pytest.raises(dibs.StorageError, match="refused the password") as caught:
            dibs.open(where.replace(QUOTED, "wrong"))
        assert "wrong" not in str(caught.value)
        with pytest.raises(dibs.StorageError, match="PGPASSWORD"):
            dibs.open(server.where(place.database).replace("dibs@", "walled@"))
        command = Command(where, process=True)
        command("add", "a")
        for verb in (
            ("ls",), ("--json", "ls"), ("--json", "claim"), ("stats", "--prometheus"),
            ("paths",), ("where",), ("--json", "paths"), ("show", "nothing"), ("init",), ("prime",),
            ("--json", "run", "--", "true"), ("--once",), ("upgrade",),
        ):  # fmt: skip
            done = command.run(*verb)
            assert SECRET.encode() not in done.stdout + done.stderr, verb
            assert QUOTED.encode() not in done.stdout + done.stderr, verb
    finally:
        rules.write_text(before)
        server.execute("SELECT pg_reload_conf()")
        server.execute("DROP ROLE walled")
