"""The command: each verb's documented exit code, and one printable line for every refusal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.model import names
from tests.contract.command import Command as AnyCommand
from tests.core.tools import Place, settle
from tests.patience import PATIENCE

CORE = Path(dibs.__file__).parents[1]


class Command(AnyCommand):
    """The command on a board in a directory."""

    def __init__(self, path: Path, *, process: bool = False) -> None:
        super().__init__(str(path), process=process)

    @property
    def path(self) -> Path:
        """The directory of the board; it can be set."""
        return Path(self.where)

    @path.setter
    def path(self, path: Path) -> None:
        self.where = str(path)


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)


def test_storage_that_fails_is_exit_1(command: Command, tmp_path: Path) -> None:
    command.path = tmp_path / "nowhere"
    command("ls", code=1)
    command.path = tmp_path / "file"
    command.path.touch()
    command("ls", code=1)
    command("init", code=1)


def test_a_finding_is_exit_6(command: Command) -> None:
    assert command("check") == ""
    (command.path / "notes.txt").touch()
    assert "notes.txt" in command("check", code=6)
    assert "notes.txt" in command("check", "--repair", code=6)


def test_a_repair_lists_what_it_repaired_and_what_is_left(command: Command) -> None:
    command("add", "a")
    records = [command.path / f".dibs/records/b.f{n}.me-0123456789" for n in (1, 2, 3)]
    for record in records[:2]:
        record.touch()
    lines = command("check", "--repair").splitlines()
    assert sorted(line for line in lines if line.startswith("repaired: ")) == [
        f"repaired: record .dibs/records/{record.name}: its claim has ended"
        for record in records[:2]
    ]
    assert not any(record.exists() for record in records)
    assert not any(
        line.startswith("repaired") for line in command("check", "--repair").splitlines()
    )
    records[2].touch()
    (command.path / "notes.txt").touch()
    found = [
        json.loads(line) for line in command("--json", "check", "--repair", code=6).splitlines()
    ]
    assert [(f["kind"], f["mended"], f["repairable"]) for f in found] == [
        ("record", True, False),
        ("stranger", False, False),
    ]


@pytest.mark.parametrize("name", ["a\nb.available", "a\x1b[2Jb.available", "\u202ea.available"])
def test_a_refusal_never_prints_an_invalid_name_raw(command: Command, name: str) -> None:
    ident = name.removesuffix(".available")
    (command.path / name).touch()
    (command.path / f"{names.escape(ident)}.f1.available").touch()
    (command.path / "x.claimed").write_bytes(b"p")
    command("claim", ident, code=3)
    command("ls")
    command("show", ident)
    command("check", code=6)
    command("park", "x.available", "--reason", "why", code=3)


def test_an_invalid_name_in_the_way_is_never_printed_raw(command: Command) -> None:
    (command.path / "a\x1b[2J\n.claimed").touch()
    command("claim", "a\x1b[2J\n", code=4)
    command("force-release", "a\x1b[2J\n.claimed/0", "--reason", "why", code=3)
    command("park", "a\x1b[2J\n.available", "--reason", "why", code=3)


@pytest.mark.parametrize("folder", ["a\nb", "a\x1b[2Jb", "\udcff"])
def test_an_invalid_path_is_never_printed_raw(command: Command, folder: str) -> None:
    command.path = command.path / folder
    command("ls", code=1)
    command("init")
    command("ls")
    command.path = command.path / "nowhere"
    command("ls", code=1)


def test_a_pipe_that_is_closed_early_is_no_error(command: Command) -> None:
    for number in range(200):
        (command.path / f"task-{number}-{'x' * 100}.available").touch()
    readable, writable = os.pipe()
    os.close(readable)
    argv = [sys.executable, "-m", "dibs", "-d", str(command.path), "ls"]
    done = subprocess.run(
        argv, env=command.env, stdout=writable, stderr=subprocess.PIPE, check=True, timeout=PATIENCE
    )
    os.close(writable)
    assert b"Traceback" not in done.stderr


def test_the_payload_is_read_from_a_file_or_standard_input(command: Command) -> None:
    source = command.path.parent / "source"
    source.write_bytes(b"\0\xff")
    command("add", "a", "--file", str(source))
    assert (command.path / "a.available").read_bytes() == b"\0\xff"
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "-d", str(command.path), "add", "b", "--file", "-"],
        input=b"from a pipe",
        env=command.env,
        check=True,
        capture_output=True,
    )
    assert done.stdout == b"b.available\n"
    assert (command.path / "b.available").read_bytes() == b"from a pipe"


def test_force_release_takes_the_act_name_that_ls_prints(command: Command) -> None:
    (command.path / "x.claimed").write_bytes(b"p")
    sight = command("ls", "--state", "claimed").split()[-1]
    assert command("force-release", sight, "--reason", "stuck") == "x.available"


def test_the_place_fixture_and_the_command_see_one_board(place: Place) -> None:
    place.board.add("a", priority=9)
    assert "a.f0p9.available" in Command(place.path)("ls")


@pytest.mark.parametrize(("known", "named"), [({}, "root"), ({"USER": "ann"}, "ann")])
@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY AS ROOT: another user's name is not known here")
def test_an_event_has_the_user_name_even_without_one_in_the_environment(
    tmp_path: Path, known: dict[str, str], named: str
) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("USER", "LOGNAME")}
    command = [sys.executable, "-m", "dibs", "-d", str(tmp_path), "--json"]
    subprocess.run([*command, "add", "a"], env=clean | known, check=True, capture_output=True)
    done = subprocess.run([*command, "log"], env=clean | known, check=True, capture_output=True)
    assert json.loads(done.stdout.splitlines()[0])["by"].startswith(f"{named}@")


def test_an_event_has_the_terminal_if_there_is_one(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "dibs", "-d", str(tmp_path), "--json"]
    subprocess.run([*command, "add", "a"], check=True, stderr=slave)
    done = subprocess.run([*command, "log"], check=True, capture_output=True)
    assert json.loads(done.stdout)["by"].endswith(f" {os.ttyname(slave).removeprefix('/dev/')}")
    os.close(master)
    os.close(slave)


def test_a_payload_reaches_a_terminal_without_its_control_characters(scratch: Path) -> None:
    payload = "\x1b]0;PWN\x07\x1b[2J\u202ewhat to do\n".encode()
    dibs.open(scratch / "board", create=True).add("a", payload)
    command = [sys.executable, "-m", "dibs", "-d", str(scratch / "board"), "show", "a", "--payload"]
    master, slave = pty.openpty()
    subprocess.run(command, check=True, stdout=slave)
    os.close(slave)
    found = os.read(master, 4096)
    os.close(master)
    assert b"what to do" in found
    assert not {b"\x1b", b"\x07", "\u202e".encode()} & {
        found[n : n + k] for n in range(len(found)) for k in (1, 3)
    }
    assert subprocess.run(command, check=True, capture_output=True).stdout == payload


def test_an_id_that_exists_does_not_stop_the_others_from_being_added(scratch: Path) -> None:
    command = Command(scratch / "board")
    command("init")
    command("add", "a1")
    done = command.run("add", "zz0", "a1", "zz1")
    assert done.returncode == 3
    assert done.stdout.split() == [b"zz0.available", b"zz1.available"]
    assert done.stderr.count(b"\n") == 1
    assert b"a1" in done.stderr
    done = command.run("add", "n1", "a1", "n2", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["status"], row["id"]) for row in rows] == [
        ("added", "n1"),
        ("exists", "a1"),
        ("added", "n2"),
    ]
    done = command.run("add", "m1", "m2", "--max-waiting", "1")
    assert done.returncode == 3
    assert [name in done.stderr for name in (b"m1", b"m2")] == [True, True]


def test_a_name_after_its_id_in_a_list_is_refused_as_a_repeat(scratch: Path) -> None:
    command = Command(scratch / "board")
    command("init")
    command("add", "x", "y")
    parked = command("park", "x.available", "--reason", "why")
    listed = scratch / "list"
    bare = parked.partition("/")[2]
    for lines in (f"{parked}\nx\n{bare}\n", f"{bare}\n{parked}\nx\n"):
        listed.write_text(lines)
        done = command.run("requeue", "--from", str(listed), "--dry-run")
        shown = done.stdout.decode().splitlines()
        assert [line.split()[0] for line in shown] == ["would-requeue", "refused", "refused"]
        assert ["the same task as" in line for line in shown] == [False, True, True]
        assert done.returncode == 3
