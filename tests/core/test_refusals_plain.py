"""Odd paths, lists, texts and disks: one plain rule each, and messages that say what to do."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

import dibs
from dibs.files.disk import Disk
from tests.core.library import LIBRARY
from tests.core.test_cli import Command
from tests.core.tools import opened, settle

WEIRD = b"we\x1b]0;x\x07ird\n\xe2\x80\xae\xff".decode("utf-8", "surrogateescape")


@pytest.fixture
def command(scratch: Path) -> Command:
    settle(scratch / "board")
    return Command(scratch / "board")


class FaultyDisk(Disk):
    """A disk on which some calls fail."""

    fails: tuple[str, ...] = ()

    def sync(self, path: str) -> None:
        if self.fails and path.startswith(self.fails):
            raise OSError(errno.EIO, "Input/output error")

    def link(self, src: str, dst: str) -> None:
        if self.fails:
            raise OSError(errno.ENOSPC, "No space left on device", dst)
        super().link(src, dst)


def test_step_that_was_not_durable_says_that_it_is_done_and_can_be_repeated(scratch: Path) -> None:
    settle(scratch, durability="normal")
    port = FaultyDisk(str(scratch))
    board = opened(port)
    board.add("x")
    claim = board.claim("x")
    assert claim is not None
    port.fails = ("done",)
    with pytest.raises(dibs.Uncertain, match="the step is done, but done could not be made"):
        claim.done()
    port.fails = ()
    assert board.attach(claim.name).done().state == "done"


def test_add_on_a_full_disk_leaves_no_file(scratch: Path) -> None:
    settle(scratch)
    port = FaultyDisk(str(scratch))
    board = opened(port)
    board.add("first")
    port.fails = (".",)
    with pytest.raises(dibs.StorageError, match="No space left on device: free some space"):
        board.add("x")
    assert os.listdir(scratch / ".dibs/new") == []


def test_error_of_a_write_names_the_file(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(scratch)
    board = opened(Disk(str(scratch)))
    board.add("first")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dibs.files.disk.os.write", full)
    with pytest.raises(dibs.StorageError, match=r"\.dibs/new/x\.task\.[0-9A-F]+: No space left"):
        board.add("x", b"payload")


@pytest.mark.parametrize(
    "argv",
    [["init"], ["add", "x"], ["ls"], ["stats"], ["stats", "--prometheus"], ["paths"], ["check"]],
    ids=" ".join,
)
def test_control_characters_in_the_path_of_the_board_are_escaped(
    scratch: Path, argv: list[str]
) -> None:
    settle(scratch / WEIRD)
    Command(scratch / WEIRD)(*argv)  # checks that each line is printable


def test_control_characters_in_the_path_of_the_board_are_escaped_by_shells(scratch: Path) -> None:
    path = scratch / WEIRD / "missing"
    done = subprocess.run(
        ["sh", "-c", f". {LIBRARY}; next_task"],
        env={**os.environ, "DIBS_BOARD": str(path)},
        capture_output=True,
    )
    assert b"missing" in done.stderr
    assert not {0x1B, 0x07} & set(done.stderr)
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "path", ["records/failed", "new/0123456789", "new/x.task.0123456789", "aside/x"]
)
def test_folder_in_the_place_of_a_file_is_for_a_person_to_move(command: Command, path: str) -> None:
    command("init")
    (command.path / ".dibs" / path).mkdir()
    found = command("check", code=6)
    assert "move it" in found or "left alone" in found
    assert "(--repair)" not in found
    assert command("check", "--repair", code=6) == found


@pytest.mark.parametrize("inner", ["done", ".dibs", ".dibs/records", "failed/deep/er"])
def test_folder_of_a_board_is_not_a_board(command: Command, inner: str) -> None:
    command("init")
    board = command.path
    (board / inner).mkdir(parents=True, exist_ok=True)
    before = sorted(board.rglob("*"))
    command.path = board / inner
    for argv in (["init"], ["add", "zz"], ["init", "--unmounted"]):
        message = command(*argv, code=2)
        assert f"of the board {os.path.realpath(board)}: give that board" in message
    assert sorted(board.rglob("*")) == before


@pytest.mark.parametrize("verb", ["requeue", "forget"])
def test_list_may_have_notes_and_be_empty(command: Command, verb: str, tmp_path: Path) -> None:
    command("init")
    (tmp_path / "list").write_text("# a note\n\n  \r\n")
    done = command.run(verb, "--from", str(tmp_path / "list"))
    assert (done.returncode, done.stderr) == (0, b"dibs: the list is empty\n")


BYTE = b"a\x9b".decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    "argv",
    [
        ["claim", "--meta", BYTE],
        ["claim", "--owner", BYTE],
        ["force-release", "{claim}", "--reason", BYTE],
        ["park", "{claim}", "--reason", BYTE],
    ],
    ids=lambda argv: " ".join(argv[:1]),
)
def test_text_that_is_not_utf_8_is_refused(command: Command, argv: list[str]) -> None:
    command("add", "x", "y")
    claim = command("claim", "x")
    message = command(*(word.replace("{claim}", claim) for word in argv), code=2)
    assert "must be valid UTF-8, got 'a\\udc9b'" in message
    command("verify", claim)


def test_reason_of_a_worker_is_never_refused(command: Command) -> None:
    command("add", "x")
    command("fail", command("claim", "x"), "--reason", BYTE)
