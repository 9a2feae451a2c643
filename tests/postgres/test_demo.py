"""The demo in a database: its workers work there, and nothing of it is left."""

import os
import signal
import subprocess
import sys

import pytest

import dibs
from dibs.model.settings import DEFAULT_TOML
from dibs_tui.demo.crew import Crew
from tests.patience import PATIENCE
from tests.postgres.cluster import Server
from tests.tui.test_demo_crew import ENV, until

MAIN = "import sys; from dibs_tui.cli import main; sys.exit(main())"


def test_the_crew_works_in_a_database_and_leaves_nothing(shared_server: Server) -> None:
    where = shared_server.create("demo")
    with Crew(database=where) as crew:
        assert crew.path == where
        board = dibs.open(where)
        owners = until(
            lambda: {event.by for event in board.log.oldest_first() if event.verb == "done"}
        )
        assert owners
        until(lambda: len({row.host for row in board.entries() if row.host}) > 2)
    with pytest.raises(dibs.BoardMissing):
        dibs.open(where)


def test_a_database_with_a_board_is_refused_and_left_alone(shared_server: Server) -> None:
    where = shared_server.create("not_demo")
    dibs.open(where, create=True).add("mine")
    with pytest.raises(dibs.StorageError, match="has a board already"), Crew(database=where):
        pass
    assert dibs.open(where).find("mine")


def test_the_next_demo_replaces_one_that_was_killed(shared_server: Server) -> None:
    from dibs.postgres import schema

    where = shared_server.create("killed_demo")
    schema.initialize_demo(where, DEFAULT_TOML)
    dibs.open(where).add("old")
    with Crew(database=where):
        assert not dibs.open(where).find("old")


def test_the_command_shows_it_and_ends_with_it(shared_server: Server) -> None:
    where = shared_server.create("shown_demo")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "demo", "--board", where, "--once"],
        env=ENV | {"DIBS_BOARD": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dibs  postgresql://dib"), done.stdout
    assert "available" in done.stdout.lower()
    with pytest.raises(dibs.BoardMissing):
        dibs.open(where)


def test_a_killed_keeper_leaves_nothing(shared_server: Server) -> None:
    where = shared_server.create("killed_keeper")
    with Crew(database=where) as crew:
        os.kill(crew.keeper.pid, signal.SIGKILL)
        crew.keeper.wait(PATIENCE)
    with pytest.raises(dibs.BoardMissing):
        dibs.open(where)
