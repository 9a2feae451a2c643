"""`check --probe` on real directories and on simulated bad disks."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.files.disk import Disk
from dibs.files.probing import peer, races
from dibs.files.probing.probe import ROUNDS, probe, quick
from dibs.files.probing.races import race
from dibs.files.probing.trial import on_trial, opened
from dibs.model.fitness import BAD, GOOD, NOTE, Ability
from tests.core.test_cli import Command
from tests.core.tools import NOBODY, give, in_child, settle

ABILITIES = ["mount", "rename", "keep", "link", "create", "times", "sync", "names", "users"]
TOGETHER = ["peer", "peer-rename", "peer-keep", "peer-link"]
LAGS = ["peer-names", "peer-listing", "peer-beats"]
ROOT_ONLY = "NO SECOND USER WAS TRIED: only root can become one"


def tree(path: Path) -> list[tuple[str, int]]:
    """Every name below a board with its inode; a probe may only replace files of the clock."""
    found = [(str(p.relative_to(path)), p.stat().st_ino) for p in path.rglob("*")]
    return sorted(entry for entry in found if "/witness/" not in entry[0])


def by_name(lines: Iterator[Ability]) -> dict[str, Ability]:
    return {line.ability: line for line in lines}


@pytest.fixture
def board(scratch: Path) -> Path:
    path = scratch / "board"
    settle(path)
    dibs.open(path).add("a", b"payload")
    dibs.open(path).claim(owner="me")
    return path


def test_a_directory_in_memory_is_fine_and_stays_unchanged(command: Command, scratch: Path) -> None:
    command("add", "a", "b")
    command("claim", "--owner", "me")
    before = tree(command.path)
    lines = command("check", "--probe").splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ABILITIES
    assert {line.split()[1] for line in lines[:-1]} == {"good"}
    assert lines[-1] == "fine"
    assert tree(command.path) == before


def test_json_output_is_one_versioned_object_per_line(command: Command) -> None:
    found = [json.loads(line) for line in command("--json", "check", "--probe").splitlines()]
    assert all(row.pop("v") == 1 for row in found)
    assert all(row.pop("board") == str(command.path) for row in found)
    *lines, verdict = found
    assert all({"ability", "grade", "text"} <= set(row) for row in lines)
    assert verdict == {"status": "fine", "least_ttl": 1, "why": [], "text": "fine"}
    figures: dict[str, Any] = {row["ability"]: row for row in lines}
    assert figures["rename"]["rounds"] == ROUNDS
    assert figures["rename"]["mine"] + figures["rename"]["theirs"] == ROUNDS
    assert 0 < figures["times"]["tick"] < 0.1
    assert figures["times"]["rename_moves_ctime"] is True
    assert figures["mount"]["network"] is False


def test_the_same_directory_over_another_path_is_seen_at_once(
    command: Command, scratch: Path
) -> None:
    command("init")
    (scratch / "link").symlink_to(command.path)
    before = tree(command.path)
    lines = command("check", "--probe", "--peer", str(scratch / "link")).splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ABILITIES + TOGETHER + LAGS
    assert lines[-1] == "fine"
    assert tree(command.path) == before


def test_another_directory_is_no_peer(
    board: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "_SAME", 0.1)
    settle(scratch / "other")
    found = by_name(probe(str(board), str(scratch / "other")))
    assert found["peer"].grade == BAD
    assert "another directory" in found["peer"].text
    assert LAGS[0] not in found


def test_options_that_exclude_each_other_are_refused(command: Command) -> None:
    command("check", "--peer", "/", code=2)
    command("check", "--probe", "--repair", code=2)
    assert "is not a directory" in command("check", "--probe", "--peer", "/nowhere", code=2)


def test_the_quick_probe_leaves_nothing_behind(board: Path) -> None:
    before = tree(board)
    assert quick(str(board)).text == "fine"
    assert tree(board) == before


def test_init_prints_no_warning_if_all_is_well(command: Command) -> None:
    done = command.run("init")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(command("--json", "init")) == {
        "v": 1,
        "status": "ready",
        "board": str(command.path),
    }


def test_check_finds_a_killed_probe_and_repair_removes_it(board: Path, command: Command) -> None:
    left = board / ".dibs/trial.0123456789"
    (left / "rename.0123456789").mkdir(parents=True)
    assert command("check") == ""
    os.utime(left, (1, 1))
    assert "left by a probe that was killed  (--repair)" in command("check", code=6)
    assert command("check", "--repair").startswith("repaired: trial .dibs/trial.0123456789")
    assert not left.exists()


def test_a_killed_probe_is_found_at_once_and_a_running_one_is_left_alone(
    board: Path, command: Command
) -> None:
    line = [sys.executable, "-m", "dibs", "-d", str(board), "check", "--probe"]
    with subprocess.Popen(line, env=command.env, stdout=subprocess.PIPE) as prober:
        assert prober.stdout is not None
        assert prober.stdout.readline().startswith(b"mount")
        assert prober.stdout.readline().startswith(b"rename")
        prober.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, prober.pid, os.WSTOPPED | os.WNOWAIT)
        (left,) = (board / ".dibs").glob("trial.*")
        assert command("check") == ""
        prober.kill()
    assert "left by a probe that was killed" in command("check", code=6)
    command("check", "--repair")
    assert not left.exists()


def test_a_killed_probe_leaves_no_board_where_there_was_none(scratch: Path) -> None:
    command = Command(scratch / "plain")
    command.path.mkdir()
    line = [sys.executable, "-m", "dibs", "-d", str(command.path), "check", "--probe"]
    with subprocess.Popen(line, env=command.env, stdout=subprocess.PIPE) as prober:
        assert prober.stdout is not None
        assert prober.stdout.readline().startswith(b"mount")
        assert prober.stdout.readline().startswith(b"rename")
        prober.kill()
    assert "left by a probe that was killed" in command("check", code=6)
    assert os.listdir(command.path) == [".dibs"]
    assert command("check", "--repair").startswith("repaired: trial")
    assert os.listdir(command.path) == []


def test_a_repair_with_nothing_to_repair_makes_no_board(scratch: Path) -> None:
    command = Command(scratch / "plain")
    command.path.mkdir()
    (command.path / "a.available").touch()
    assert command("check", "--repair") == ""
    assert os.listdir(command.path) == ["a.available"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"[1, 2, 3, 4, 5]", b"[" * 9000, b'["", "", "", true, 1]']
)
def test_an_invalid_prober_file_is_ignored(board: Path, command: Command, content: bytes) -> None:
    left = board / ".dibs/trial.0123456789"
    left.mkdir()
    (left / "prober").write_bytes(content)
    assert command("check") == ""


def test_a_later_probe_removes_a_killed_one(board: Path) -> None:
    old, young, strange = (board / ".dibs" / f"trial.{n}" for n in ("0" * 10, "1" * 10, "mine"))
    for folder in (old, young, strange):
        (folder / "rename").mkdir(parents=True)
        (folder / "rename/left").touch()
    for folder in (old, strange):
        os.utime(folder, (0, 0))
    list(probe(str(board)))
    assert not old.exists()
    assert (young / "rename/left").exists()
    assert (strange / "rename/left").exists()


def test_a_link_in_place_of_a_trial_folder_is_not_followed(board: Path, scratch: Path) -> None:
    (scratch / "mine").mkdir()
    (scratch / "mine/kept").touch()
    with opened(str(board)) as store, on_trial(store, str(board), 1, 1) as trial:
        folder = board / trial.folder
        (folder / "inner").symlink_to(scratch / "mine")
        folder.rename(board / "elsewhere")
        folder.symlink_to(scratch / "mine")
    assert (scratch / "mine/kept").exists()


# Bad disks


class Generous(Disk):
    """Reports success to every process in a race."""

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        with suppress(OSError):
            super().rename(src, dst, keep)


class Forgetful(Disk):
    """Does what it should, and reports an error."""

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        super().rename(src, dst, keep)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


class Broken(Disk):
    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


class Deadly(Disk):
    """Kills each process that renames."""

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        os._exit(1)


@pytest.mark.parametrize("kind", ["rename", "keep", "link", "create"])
def test_two_processes_meet_in_every_round_and_one_of_them_wins(kind: str, scratch: Path) -> None:
    disk = Disk(str(scratch))
    found = race(kind, disk, disk, ROUNDS, 10)
    assert (found.rounds, found.both, found.none, found.error) == (ROUNDS, 0, 0, "")
    assert found.mine + found.theirs == ROUNDS
    assert min(found.mine, found.theirs) > ROUNDS // 10, "no race was run"


@pytest.mark.parametrize(("disk", "wrong"), [(Generous, (20, 0, "")), (Forgetful, (0, 20, ""))])
def test_a_disk_that_lies_about_a_race_is_detected(
    disk: type[Disk], wrong: tuple[int, int, str], scratch: Path
) -> None:
    found = race("rename", disk(str(scratch)), disk(str(scratch)), 20, 10)
    assert (found.both, found.none, found.error) == wrong


def test_other_errors_of_the_disk_are_reported(scratch: Path) -> None:
    found = race("rename", Disk(str(scratch)), Broken(str(scratch)), 5, 10)
    assert (found.rounds, found.mine, found.error) == (5, 5, "Input/output error")


def test_a_race_ends_at_its_time_limit(scratch: Path) -> None:
    found = race("create", Disk(str(scratch)), Disk(str(scratch)), 10**6, 0.05)
    assert 0 < found.rounds < 10**6
    assert (found.both, found.none) == (0, 0)


def test_one_race_runs_on_any_slow_disk(scratch: Path) -> None:
    assert race("rename", Disk(str(scratch)), Disk(str(scratch)), 5, 0).rounds == 1


def test_a_racer_that_starts_a_round_late_still_runs_it(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet = races._Course._meet

    def slowly(course: races._Course, who: int, n: int) -> None:
        meet(course, who, n)
        time.sleep(0.2 * who)

    monkeypatch.setattr(races._Course, "_meet", slowly)
    monkeypatch.setattr(races, "_PATIENCE", 5)
    found = race("rename", Disk(str(scratch)), Disk(str(scratch)), 5, 0)
    assert (found.rounds, found.mine + found.theirs, found.error) == (1, 1, "")


def test_a_racer_that_dies_ends_the_race(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "_PATIENCE", 0.2)
    with pytest.raises(TimeoutError):
        race("rename", Disk(str(scratch)), Deadly(str(scratch)), 5, 10)


class Folding(Disk):
    """A disk that ignores the case of names, like FAT."""

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        super().create(path.lower(), data, sync)

    def stat(self, path: str) -> Any:
        return super().stat(path.lower())


def test_a_disk_that_ignores_case_is_detected(board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dibs.files.probing.trial.Disk", Folding)
    monkeypatch.setattr("dibs.files.board_files.FOLDERS", ())
    line = by_name(probe(str(board)))["names"]
    assert (line.grade, line.figures["cases"]) == (NOTE, False)
    assert "a and A are the same name" in line.text


# Other users


@pytest.mark.skipif(os.geteuid() != 0, reason=ROOT_ONLY)
@pytest.mark.parametrize(
    ("mode", "group", "part"),
    [
        (0o2775, 54321, "lets group 54321 work here, and test users confirmed it"),
        (0o777, 54321, "lets group 54321 and everyone work here, and test users confirmed it"),
        (0o755, 54321, "only user 0 can work here"),
    ],
)
def test_another_user_works_where_the_mode_lets_it(
    mode: int, group: int, part: str, scratch: Path
) -> None:
    path = scratch / "board"
    path.mkdir()
    os.chown(path, 0, group)
    path.chmod(mode)
    line = by_name(probe(str(path)))["users"]
    assert line.grade == GOOD
    assert part in line.text


@pytest.mark.skipif(os.geteuid() != 0, reason=ROOT_ONLY)
def test_another_user_may_be_stopped_on_the_way(scratch: Path) -> None:
    path = scratch / "closed/board"
    path.mkdir(parents=True)
    path.chmod(0o777)
    path.parent.chmod(0o700)
    line = by_name(probe(str(path)))["users"]
    assert line.grade == NOTE
    assert "cannot enter the directory (EACCES)" in line.text


@pytest.mark.skipif(os.geteuid() != 0, reason=ROOT_ONLY)
def test_another_user_who_never_answers_did_not_do_well(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(scratch)
    scratch.chmod(0o777)
    monkeypatch.setattr(os, "setuid", lambda _: os._exit(1))
    line = by_name(probe(str(scratch)))["users"]
    assert line.grade == NOTE
    assert "a user outside the group cannot answer" in line.text


@pytest.mark.skipif(os.geteuid() != 0, reason=ROOT_ONLY)
def test_without_root_only_the_mode_is_reported(scratch: Path) -> None:
    path = scratch / "board"
    settle(path)
    path.chmod(0o775)
    give(path, NOBODY)
    line = in_child(lambda: by_name(probe(str(path)))["users"], uid=NOBODY)
    assert line.grade == GOOD
    assert "not tested, because only root can" in line.text


@pytest.mark.skipif(os.geteuid() != 0, reason=ROOT_ONLY)
def test_a_user_who_may_not_write_is_advised_not_to_use_it(board: Path) -> None:
    found = in_child(lambda: list(probe(str(board))), uid=NOBODY)
    assert [line.ability for line in found] == ["mount", "write"]
    assert found[-1].grade == BAD


def test_a_sticky_directory_is_none_for_a_board(board: Path) -> None:
    board.chmod(0o1777)
    line = by_name(probe(str(board)))["users"]
    assert line.grade == BAD
    assert "chmod -t" in line.text


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_directory_that_is_no_board_is_left_unchanged(scratch: Path, mode: int) -> None:
    path = scratch / "board"
    path.mkdir()
    (path / "done").mkdir()
    path.chmod(mode)
    assert by_name(probe(str(path)))["times"].grade == GOOD
    assert os.listdir(path) == ["done"]


def test_a_board_that_is_made_during_a_probe_stays(scratch: Path) -> None:
    path = scratch / "board"
    path.mkdir()
    for line in probe(str(path)):
        if line.ability == "rename":
            dibs.open(path).add("x")
    assert dibs.open(path).check() == []
    assert dibs.open(path).claim() is not None


def test_an_interrupted_first_use_allows_no_sticky_board(scratch: Path) -> None:
    path = scratch / "board"
    (path / ".dibs").mkdir(parents=True)
    path.chmod(0o1777)
    with pytest.raises(dibs.NotABoard, match="sticky"):
        dibs.open(path).add("x")


# The cost for a worker


def test_no_verb_of_a_worker_loads_the_probe(command: Command) -> None:
    command("add", "a")
    command.env["PYTHONPROFILEIMPORTTIME"] = "1"
    for verb in ("claim", "ls", "check"):
        imports = command.run(verb, process=True).stderr.decode()
        assert "dibs.files.engine" in imports
        assert not {
            "dibs.files.probing.probe",
            "dibs.files.probing.abilities",
            "dibs.files.mounts",
        } & set(imports.split())
