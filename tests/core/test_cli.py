"""The command: each verb's documented exit code, and one clean line for every refusal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs import names
from tests.core.tools import Place, settle
from tests.patience import PATIENCE

CORE = Path(dibs.__file__).parents[1]


class Command:
    """`dibs -d BOARD …` in a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env = os.environ | {"PYTHONPATH": str(CORE), "USER": "tester"}

    def __call__(self, *argv: str, code: int = 0) -> str:
        """What it prints, once it has ended with that code; stderr is at most one clean line."""
        done = self.run(*argv)
        assert done.returncode == code, done
        told = done.stderr.decode("utf-8", "surrogateescape")
        assert "Traceback" not in told
        assert len(told.splitlines()) <= 1, told
        if code in (1, 2, 3, 5):
            assert told.startswith("dibs: ")
        printed = done.stdout.decode("utf-8", "surrogateescape")
        for line in (printed + told).split("\n"):
            assert line.isprintable(), line
        return (printed if code in (0, 4, 6) else told).rstrip("\n")

    def run(self, *argv: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "dibs", "-d", str(self.path), *argv]
        return subprocess.run(command, capture_output=True, env=self.env, timeout=PATIENCE)


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)


def test_a_worker_goes_from_claim_to_done_by_printed_names(command: Command) -> None:
    assert command("add", "a", "v1.2") == "a.available\nv1=2E2.available"
    name = command("claim", "--owner", "me", "--ttl", "50", "--meta", "branch main")
    assert re.fullmatch(r"a\.f1\.me-[0-9A-F]{10}", name)
    for verb in ("beat", "verify"):
        assert command(verb, name) == ""
    assert command("done", name) == f"done/{name}"
    assert [line.split()[1] for line in command("log").splitlines()].count("done") == 1


def test_nothing_to_take_and_held_are_exit_4(command: Command) -> None:
    assert command("claim", code=4) == ""
    command("add", "a")
    command("claim", "a")
    command("claim", "a", code=4)
    command("acquire", "door")
    command("acquire", "door", code=4)


def test_bad_input_is_exit_2(command: Command) -> None:
    command("add", "x" * 200, code=2)
    command("add", "a", "--priority", "10", code=2)
    command("add", "a", "--file", "/nowhere", code=2)
    command("claim", "--ttl", "0", code=2)
    command("claim", "--ttl", "nan", code=2)
    command("claim", "--owner", "a\nb", code=2)
    command("claim", "--meta", "m" * 1025, code=2)
    command("claim", "--pid", "0", code=2)
    command("beat", "a", code=2)
    command("park", "a", "--reason", "why", code=2)
    command("requeue", "a\x1b[2J", code=2)


def test_a_changed_board_is_exit_3(command: Command) -> None:
    command("add", "a")
    assert "exists" in command("add", "a", code=3)
    command("claim", "none", code=3)
    command("show", "none", code=3)
    name = command("claim", "a")
    command("forget", "a", code=3)
    command("done", name)
    assert name in command("force-release", name, "--reason", "stuck", code=3)


def test_a_lost_claim_is_exit_5(command: Command) -> None:
    command("add", "a")
    name = command("claim", "a")
    command("force-release", name, "--reason", "stuck")
    for verb in ("beat", "verify", "done", "fail", "release"):
        command(verb, name, code=5)


def test_a_force_release_without_a_reason_or_with_an_empty_one_is_exit_2(command: Command) -> None:
    command("add", "a")
    name = command("claim", "a")
    for reason in ((), ("--reason", ""), ("--reason= ",)):
        assert "reason" in command("force-release", name, *reason, code=2)
    command("verify", name)


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


def test_a_repair_says_what_it_mended_and_what_is_left(command: Command) -> None:
    command("add", "a")
    records = [command.path / f".dibs/records/b.f{n}.me-0123456789" for n in (1, 2, 3)]
    for record in records[:2]:
        record.touch()
    lines = command("check", "--repair").splitlines()
    assert sorted(line for line in lines if line.startswith("mended: ")) == [
        f"mended: record .dibs/records/{record.name}: its claim has ended" for record in records[:2]
    ]
    assert not any(record.exists() for record in records)
    assert not any(line.startswith("mended") for line in command("check", "--repair").splitlines())
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
def test_a_foul_name_is_never_printed_raw_in_a_refusal(command: Command, name: str) -> None:
    ident = name.removesuffix(".available")
    (command.path / name).touch()
    (command.path / f"{names.escape(ident)}.f1.available").touch()
    (command.path / "x.claimed").write_bytes(b"p")
    command("claim", ident, code=3)
    command("ls")
    command("show", ident)
    command("check", code=6)
    command("park", "x.available", "--reason", "why", code=3)


def test_a_foul_name_in_the_way_is_never_printed_raw(command: Command) -> None:
    (command.path / "a\x1b[2J\n.claimed").touch()
    command("claim", "a\x1b[2J\n", code=4)
    command("force-release", "a\x1b[2J\n.claimed/0", "--reason", "why", code=3)
    command("park", "a\x1b[2J\n.available", "--reason", "why", code=3)


@pytest.mark.parametrize("folder", ["a\nb", "a\x1b[2Jb", "\udcff"])
def test_a_foul_path_is_never_printed_raw(command: Command, folder: str) -> None:
    command.path = command.path / folder
    command("ls", code=1)
    command("init")
    command("ls")
    command.path = command.path / "nowhere"
    command("ls", code=1)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_cannot_show_a_character_breaks_nothing(
    command: Command, encoding: str
) -> None:
    command.env["PYTHONIOENCODING"] = encoding
    command("add", "é")
    for verb in (["ls"], ["show", "é"], ["log"]):
        done = command.run(*verb)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


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


def test_the_sight_that_ls_prints_is_what_force_release_takes(command: Command) -> None:
    (command.path / "x.claimed").write_bytes(b"p")
    sight = command("ls", "--state", "claimed").split()[-1]
    assert command("force-release", sight, "--reason", "stuck") == "x.available"


def test_an_operators_name_stands_in_the_journal(command: Command) -> None:
    command("add", "a")
    command("park", "a.available", "--reason", "flaky")
    assert "tester@" in command("log", "a")


def test_a_process_that_died_gives_its_claim_back_at_once(command: Command) -> None:
    command("add", "a")
    with subprocess.Popen(["sleep", "60"]) as worker:
        command("claim", "a", "--pid", str(worker.pid))
        assert command("reap") == ""
        worker.kill()
        worker.wait()
        assert command("reap") == "a.f1a1.available"


def test_the_place_fixture_and_the_command_see_one_board(place: Place) -> None:
    place.board.add("a", priority=9)
    assert "a.f0p9.available" in Command(place.path)("ls")


@pytest.mark.parametrize(("known", "named"), [({}, "root"), ({"USER": "ann"}, "ann")])
@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY AS ROOT: another user's name is not known here")
def test_an_event_is_signed_with_a_users_name_also_where_the_environment_has_none(
    tmp_path: Path, known: dict[str, str], named: str
) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("USER", "LOGNAME")}
    command = [sys.executable, "-m", "dibs", "-d", str(tmp_path), "--json"]
    subprocess.run([*command, "add", "a"], env=clean | known, check=True, capture_output=True)
    told = subprocess.run([*command, "log"], env=clean | known, check=True, capture_output=True)
    assert json.loads(told.stdout.splitlines()[0])["by"].startswith(f"{named}@")


def test_an_event_is_signed_with_the_terminal_where_there_is_one(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "dibs", "-d", str(tmp_path), "--json"]
    subprocess.run([*command, "add", "a"], check=True, stderr=slave)
    told = subprocess.run([*command, "log"], check=True, capture_output=True)
    assert json.loads(told.stdout)["by"].endswith(f" {os.ttyname(slave).removeprefix('/dev/')}")
    os.close(master)
    os.close(slave)


def test_an_id_that_exists_does_not_keep_the_others_from_being_added(scratch: Path) -> None:
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


def test_a_name_after_its_id_in_a_list_is_called_a_repeat(scratch: Path) -> None:
    command = Command(scratch / "board")
    command("init")
    command("add", "x", "y")
    parked = command("park", "x.available", "--reason", "why")
    listed = scratch / "list"
    bare = parked.partition("/")[2]
    for lines in (f"{parked}\nx\n{bare}\n", f"{bare}\n{parked}\nx\n"):
        listed.write_text(lines)
        done = command.run("requeue", "--from", str(listed), "--dry-run")
        told = done.stdout.decode().splitlines()
        assert [line.split()[0] for line in told] == ["would-requeue", "refused", "refused"]
        assert ["the same task as" in line for line in told] == [False, True, True]
        assert done.returncode == 3
