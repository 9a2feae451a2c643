"""What is wrong with a database, its server or this host is said in one line, with what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg
import pytest

import dibs
from tests.contract.command import CORE, Command
from tests.filesystems.remote import free_port
from tests.patience import PATIENCE
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server, server, why_not
from tests.postgres.standby import standby
from tests.tui.terminal import terminal

SECRET = "s3cr:t/@?#&%=ä"
VERBS = (
    ("ls",),
    ("add", "build"),
    ("claim",),
    ("acquire", "door"),
    ("log",),
    ("status", "door"),
    ("reap",),
    ("run", "--", "true"),
    ("watch",),
)


NO_LIBRARY = """
import ctypes

def missing(*given): raise OSError("not there")

ctypes.CDLL = missing
"""
"""Done at the start of each Python: no library can be loaded."""


class Trouble(NamedTuple):
    """An address that does not work, and what is said of it."""

    where: str
    code: int
    words: tuple[str, ...]
    """Each of them is in the line."""


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks for passwords."""
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    with server(tcp=True, password=SECRET) as found:
        yield found


@pytest.fixture(scope="module")
def secret_board(guarded: Server) -> Site:
    """A board there, by an address with the password."""
    made = f"board_{free_port()}"
    guarded.create(made)
    where = guarded.tcp_url(made, password=SECRET)
    dibs.open(where, create=True)
    return Site(guarded, made, where)


def hidden(text: str) -> bool:
    """Whether a text shows the password in no spelling."""
    return not any(each in text for each in (SECRET, quote(SECRET, safe=""), "s3cr", "geheim"))


def check(trouble: Trouble, *argv: str) -> None:
    """Run a verb, and check what it says."""
    done = Command(trouble.where, process=True).run(*argv)
    said = done.stderr.decode()
    where = f"{argv}: {said!r}"
    assert done.returncode == trouble.code, where
    assert said.startswith("dibs: "), where
    assert len(said.splitlines()) == 1, where
    for word in trouble.words:
        assert word in said, where
    assert hidden(said + done.stdout.decode()), where


def check_all(trouble: Trouble) -> None:
    """The same with every verb, in words and in JSON."""
    for argv in VERBS:
        check(trouble, *argv)
    done = Command(trouble.where, process=True).run("--json", "ls")
    assert done.returncode == trouble.code
    assert hidden(done.stdout.decode() + done.stderr.decode())
    for line in done.stdout.decode().splitlines():
        json.loads(line)


def test_a_newer_schema_is_refused(shared_server: Server) -> None:
    site = new_site(shared_server)
    site.sql("UPDATE dibs.meta SET value = '999' WHERE key = 'format'")
    check_all(Trouble(site.where, 1, ("update dibs",)))
    with pytest.raises(dibs.NewerFormat):
        dibs.open(site.where)


def test_a_client_that_was_connected_notices_a_newer_schema(shared_server: Server) -> None:
    site = new_site(shared_server)
    board = site.board
    board.add("build")
    site.sql("UPDATE dibs.meta SET value = '999' WHERE key = 'format'")
    site.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with pytest.raises(dibs.NewerFormat):
        board.claim()


def test_a_missing_extra_is_named(site: Site, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_LIBRARY)
    env = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{CORE}"}
    for argv in VERBS:
        command = [sys.executable, "-m", "dibs", "-d", site.where, *argv]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2, (argv, done)
        assert len(done.stderr.splitlines()) == 1, (argv, done)
        assert "[postgres]'`, or your system's package of libpq" in done.stderr


def test_a_wrong_password_is_refused_and_never_shown(secret_board: Site) -> None:
    where = secret_board.server.tcp_url(secret_board.database, password="geheim-falsch")
    check_all(Trouble(where, 1, ("password",)))
    with pytest.raises(dibs.StorageError) as caught:
        dibs.open(where)
    assert hidden(str(caught.value))
    assert hidden(repr(caught.value))


def test_a_missing_password_is_named(secret_board: Site) -> None:
    where = secret_board.server.tcp_url(secret_board.database)
    check_all(Trouble(where, 1, ("password",)))


def test_a_database_that_is_no_board_is_left_alone(shared_server: Server) -> None:
    where = shared_server.create("no_board")
    check_all(Trouble(where, 1, ("no board", "init")))
    found = shared_server.sql(
        "SELECT count(*) FROM pg_namespace WHERE nspname = 'dibs'", database="no_board"
    )
    assert found == [(0,)]


def test_a_database_that_does_not_exist_is_named(shared_server: Server) -> None:
    check_all(Trouble(shared_server.url("nowhere"), 1, ("nowhere", "does not exist")))


def test_a_server_that_is_not_there_is_named(guarded: Server) -> None:
    port = free_port()
    where = f"postgresql://dibs:geheim@127.0.0.1:{port}/board"
    for argv in (("ls",), ("add", "x"), ("claim",), ("run", "--", "true")):
        check(Trouble(where, 1, (str(port),)), *argv)


def test_a_host_that_is_unknown_is_named() -> None:
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    check(
        Trouble("postgresql://dibs:geheim@no-such-host.invalid/board", 1, ("no-such-host",)), "ls"
    )


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://dibs:geheim@localhost:port/board",
        "postgresql://dibs:geheim@localhost/board?no_such_option=1",
        "postgresql://dibs:geheim@[::1/board",
        "postgresql://dibs:ge%zzheim@localhost/board",
        "postgresql://localhost/bo%zzard",
        "postgresql://localhost:99999/board",
        "postgresql://dibs:ge@heim@localhost/board",
        "postgresql://dibs:ge/heim@localhost/board",
        "postgresql://dibs:geheim/board",
        "postgresql://localhost/board?passw%6Frd=geheim&x",
        "postgresql://localhost/bo\udcffard",
    ],
)
def test_an_address_that_cannot_be_read_is_refused(where: str) -> None:
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    done = Command(where, process=True).run("ls")
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert len(said.splitlines()) == 1
    assert "heim" not in said + done.stdout.decode()


def test_a_schema_of_another_program_is_one_line_with_one_advice(shared_server: Server) -> None:
    where = shared_server.create("foreign_schema")
    shared_server.sql("CREATE SCHEMA dibs", database="foreign_schema")
    for verb in ("ls", "init", "upgrade"):
        check(Trouble(where, 1, ("not that of a board", "`createdb`")), verb)
    shared_server.sql("CREATE TABLE dibs.meta (mine text)", database="foreign_schema")
    for verb in ("ls", "init", "upgrade"):
        check(Trouble(where, 1, ("not that of a board", "`createdb`")), verb)


def test_a_function_that_is_missing_is_put_back(site: Site) -> None:
    site.sql("DROP FUNCTION dibs.clock()")
    for verb in ("ls", "check", "init"):
        check(Trouble(site.where, 1, ("dibs.clock() does not exist", "upgrade`")), verb)
    Command(site.where, process=True)("upgrade")
    Command(site.where, process=True)("ls")


def test_a_statement_that_takes_too_long_for_the_server_is_named(site: Site) -> None:
    site.sql(f"ALTER DATABASE {site.database} SET statement_timeout = '100ms'")
    with psycopg.connect(site.where) as other:
        other.execute("LOCK TABLE dibs.task")
        for argv in (("ls",), ("add", "x"), ("upgrade",)):
            check(Trouble(site.where, 1, ("raise the statement_timeout",)), *argv)


def test_a_server_that_takes_no_changes_is_named() -> None:
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    with server(durable=True) as primary:
        made = new_site(primary)
        with standby(primary) as copy:
            where = copy.url(made.database)
            for argv in (("add", "x"), ("claim",), ("upgrade",)):
                check(Trouble(where, 1, ("takes changes", "the primary")), *argv)
            assert Command(where, process=True).run("ls").returncode == 0


def test_a_server_that_is_full_is_named() -> None:
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    few = {"max_connections": "5", "superuser_reserved_connections": "0", "max_wal_senders": "0"}
    with server(settings=few) as small, ExitStack() as stack:
        where = small.create("board")
        for _ in range(5):
            stack.enter_context(psycopg.connect(where))
        check(Trouble(where, 1, ("too many clients", "max_connections")), "init")


def test_a_role_without_rights_is_refused_in_the_same_words_everywhere(site: Site) -> None:
    login = f"eve_{free_port()}"
    site.sql(f"CREATE ROLE {login} LOGIN")
    where = site.where.replace("//dibs@", f"//{login}@")
    for argv in (("ls",), ("add", "x"), ("init",), ("upgrade",)):
        check(Trouble(where, 3, ("permission denied", "connect as a role that may")), *argv)
        done = Command(where, process=True).run("--json", *argv)
        assert json.loads(done.stdout)["status"] == "not-allowed"


def test_a_line_break_in_the_name_of_a_database_breaks_no_line(shared_server: Server) -> None:
    for name in ("two%0Alines", "two\nlines"):
        where = shared_server.url("x").replace("/x?", f"/{name}?")
        check(Trouble(where, 1, ("two\\x0alines", "does not exist", "createdb")), "ls")


SHOWN = (
    ("ls",),
    ("--json", "ls"),
    ("where",),
    ("--json", "where"),
    ("log",),
    ("--json", "log"),
    ("show", "build"),
    ("--json", "show", "build"),
    ("stats",),
    ("check",),
    ("prime",),
    ("add", "other"),
    ("park", "other", "--reason", "no"),
    ("board", "--once"),
)


def test_the_password_of_a_board_is_never_shown(secret_board: Site) -> None:
    command = Command(secret_board.where, process=True)
    secret_board_add(secret_board)
    for argv in SHOWN:
        done = command.run(*argv)
        said = done.stdout.decode() + done.stderr.decode()
        assert hidden(said), (argv, said)
    board = dibs.open(secret_board.where)
    assert hidden(board.location.label)
    assert hidden(repr(board.log.of("build")))


@pytest.mark.parametrize("option", [(), ("--wall",)])
def test_no_screen_and_no_remembered_view_has_the_password(
    secret_board: Site, tmp_path: Path, option: tuple[str, ...]
) -> None:
    secret_board_add(secret_board)
    with terminal(tmp_path, secret_board.where, *option, columns=200) as shown:
        shown.shows(secret_board.database, "● live")
        if not option:
            shown.send("2")
            shown.shows("▌2 ○ available")
            shown.send("P")
            shown.shows("Park build")
            shown.send("\x1b")
            shown.settle(0.3)
        assert hidden(shown.raw.decode("utf-8", "replace"))
        shown.send("q")
        shown.leaves()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or hidden(path.read_text("utf-8", "replace")), path


def test_the_pointer_of_a_repository_has_no_password(secret_board: Site, tmp_path: Path) -> None:
    for part in ("objects", "refs"):
        (tmp_path / ".git" / part).mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    env = {key: os.environ[key] for key in os.environ if not key.startswith("DIBS_")}
    env |= {"PYTHONPATH": str(CORE), "XDG_STATE_HOME": str(tmp_path / "state")}

    def dibs_here(*argv: str, code: int = 0, password: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *argv],
            env=env | ({"PGPASSWORD": password} if password else {}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == code, done
        assert hidden(done.stdout + done.stderr)
        return done.stderr

    assert "give that in PGPASSWORD" in dibs_here("init", secret_board.where)
    assert hidden((tmp_path / ".git" / "dibs.toml").read_text())
    dibs_here("init", secret_board.where)
    dibs_here("ls", password=SECRET)
    assert "the server refused the password" in dibs_here("ls", code=1)
    assert "uses the board" in dibs_here("init", f"{secret_board.where}x", code=3)


def secret_board_add(site: Site) -> None:
    """One task, whichever test comes first."""
    board = dibs.open(site.where)
    if not board.find("build"):
        board.add("build")


def test_the_processes_of_a_run_have_no_password_in_their_arguments(secret_board: Site) -> None:
    """What everyone on the host can see with `ps`."""
    look = (
        "import os,sys\n"
        "mine, found = os.getpid(), []\n"
        "while mine > 1:\n"
        "    found.append(open(f'/proc/{mine}/cmdline').read())\n"
        "    mine = int(open(f'/proc/{mine}/stat').read().rpartition(')')[2].split()[1])\n"
        "print(found)\n"
    )
    site = dibs.open(secret_board.where)
    site.add("looked")
    env = os.environ | {"PYTHONPATH": str(CORE), "DIBS_BOARD": secret_board.where}
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "run", "looked", "--", sys.executable, "-c", look],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done
    assert "looked" in done.stdout
    assert hidden(done.stdout + done.stderr)
