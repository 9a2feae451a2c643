"""The location of a board: its known forms, the environment variables, what a location offers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.board import initialize, locate, upgrade
from tests.core.test_cli import Command
from tests.core.tools import Place

pytestmark = pytest.mark.fast("dibs")

UNKNOWN = ("foo://x", "redis+tls://x", "file:///srv/tasks")


@pytest.mark.parametrize("where", UNKNOWN)
def test_an_unknown_form_of_location_is_refused_with_the_known_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (dibs.open, locate, initialize, upgrade):
        with pytest.raises(dibs.BadName, match=r"there are no.*give the path of a directory"):
            use(where)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["foo://x", "redis+tls://x"])
@pytest.mark.parametrize(
    "verb", [[], ["ls"], ["init"], ["add", "a"], ["upgrade"], ["run", "--", "true"]]
)
def test_the_command_line_refuses_it_in_one_line(
    command: Command, where: str, verb: list[str]
) -> None:
    for module in ("dibs", "dibs_tui.cli"):
        done = subprocess.run(
            [sys.executable, "-m", module, "-d", where, *verb],
            cwd=command.path.parent,
            env=command.env | {"PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2, done
        assert done.stderr.count("\n") == 1, done
        assert "give the path of a directory" in done.stderr
    assert not (command.path.parent / where.partition(":")[0]).exists()


def test_a_path_that_looks_like_a_url_can_be_marked_as_a_path(tmp_path: Path) -> None:
    for where in (f"{tmp_path}/foo://x", tmp_path / "foo:" / "y"):
        board = dibs.open(where, create=True)
        assert board.location.where.startswith(str(tmp_path))
        board.add("a")


def test_the_environment_sets_the_board_by_one_variable_or_two_that_agree(command: Command) -> None:
    other = command.path.parent / "other"
    dibs.open(other, create=True).add("there")
    dibs.open(command.path).add("here")

    def listed(*given: str, **env: str) -> str:
        line = [sys.executable, "-m", "dibs", "--json", "ls", *given]
        found = subprocess.run(
            line, cwd="/", env=command.env | env, capture_output=True, text=True, check=False
        )
        return found.stdout

    assert '"id": "there"' in listed(DIBS_BOARD=str(other))
    assert '"id": "here"' in listed(DIBS_DIR=str(command.path))
    assert '"id": "there"' in listed(DIBS_BOARD=str(other), DIBS_DIR=str(other))
    assert '"id": "there"' in listed(DIBS_BOARD=str(other), DIBS_DIR="")
    assert '"status": "bad-name"' in listed(DIBS_BOARD="", DIBS_DIR=str(command.path))
    differ = {"DIBS_BOARD": str(other), "DIBS_DIR": str(command.path)}
    assert '"id": "here"' in listed("-d", str(command.path), **differ)


@pytest.mark.parametrize("module", ["dibs", "dibs_tui.cli"])
def test_two_variables_that_name_different_boards_are_refused(
    command: Command, module: str
) -> None:
    other = command.path.parent / "other"
    dibs.open(other, create=True)
    dibs.open(command.path).add("here")
    env = command.env | {"PYTHONPATH": ":".join(sys.path)}
    env |= {"DIBS_BOARD": str(other), "DIBS_DIR": str(command.path)}
    for verb in (["add", "a"], ["ls"], ["paths"], ["run", "--", "true"], []):
        line = [sys.executable, "-m", module, *verb]
        done = subprocess.run(line, cwd="/", env=env, capture_output=True, text=True)
        said = "dibs: DIBS_BOARD and DIBS_DIR name different boards: unset one\n"
        assert (done.returncode, done.stderr) == (2, said), done
    for given in (["ls", "-d", str(command.path)], ["-d", str(command.path), "ls"]):
        line = [sys.executable, "-m", module, *given]
        done = subprocess.run(line, cwd="/", env=env, capture_output=True, text=True)
        assert (done.returncode, "here" in done.stdout) == (0, True), done


def test_a_command_under_run_that_names_another_board_by_the_alias_is_refused(
    command: Command,
) -> None:
    dibs.open(command.path).add("a")
    other = command.path.parent / "other"
    dibs.open(other, create=True)
    add = f"'{sys.executable}' -m dibs add sub"
    command("run", "--", "sh", "-c", f"DIBS_DIR='{other}' {add}; test $? = 2")
    assert [task.state for task in dibs.open(command.path).find("a")] == ["done"]
    assert not dibs.open(command.path).find("sub")
    assert not dibs.open(other).find("sub")


def test_a_command_under_run_uses_the_board_of_its_claim(command: Command) -> None:
    dibs.open(command.path).add("a")
    command.env |= {"DIBS_BOARD": "/nowhere", "DIBS_DIR": "/nowhere"}
    script = 'test "$DIBS_BOARD" = "$DIBS_DIR" && cd / && dibs verify "$DIBS_CLAIM"'
    script = script.replace("dibs verify", f"'{sys.executable}' -m dibs verify")
    command("run", "--", "sh", "-c", script)
    assert [task.state for task in dibs.open(command.path).find("a")] == ["done"]


def test_a_location_gives_its_command_line_arguments(place: Place) -> None:
    location = place.board.location
    assert location.command_line_args == ("-d", str(place.path))
    assert (location.where, location.label) == (str(place.path), str(place.path))
    task = place.board.add("a", b"content")
    path = location.payload_path(task)
    assert path is not None
    assert Path(path).read_bytes() == b"content"


def test_a_board_without_files_has_no_paths(place: Place) -> None:
    remote = dibs.Location("https://host/board", "https://host/board")
    assert remote.payload_path(place.board.add("a")) is None


def test_the_capabilities_of_a_board_can_be_asked(place: Place) -> None:
    assert dibs.Capability.PROBE in place.board.capabilities
    assert {str(each) for each in dibs.Capability} >= {"probe", "check", "shell-claims"}


def test_an_event_knows_the_task_before_and_after(place: Place) -> None:
    place.board.add("a")
    claim = place.board.claim(owner="me")
    assert claim is not None
    done = claim.done()
    added, claimed, ended = place.board.log.of("a")
    assert added.before is None
    assert added.after == claimed.before
    assert claimed.after == claim.task == ended.before
    assert ended.after == done
