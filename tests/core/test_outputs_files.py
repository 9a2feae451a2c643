"""The files of notes, results and output: hostile ones, left-over ones, and other programs'."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs.model.safe_text import output_text
from dibs.model.settings import dump, load
from tests.core.library import Fleet
from tests.core.tools import Place

pytestmark = pytest.mark.fast("dibs.files")

LIMIT = 4096
FOLDERS = ("notes", "logs", "results")
INSTEAD: dict[str, Callable[[Path, Path], object]] = {
    "link outside": lambda path, outside: path.symlink_to(outside),
    "link to itself": lambda path, outside: path.symlink_to(path.name),
    "file": lambda path, outside: path.write_bytes(b"x"),
    "fifo": lambda path, outside: os.mkfifo(path),
}


def claimed(place: Place, ident: str = "x") -> dibs.Claim:
    place.board.add(ident, b"what to do")
    claim = place.board.claim(ident, owner="me")
    assert claim is not None
    return claim


def below(place: Place, folder: str) -> list[str]:
    """The names in one of the folders that are made on demand."""
    path = place.path / ".dibs" / folder
    return sorted(os.listdir(path)) if path.is_dir() else []


def test_a_claim_that_says_nothing_makes_no_folder(scratch: Path) -> None:
    place = Place(scratch)
    claimed(place).done()
    assert not {*FOLDERS} & {*os.listdir(place.path / ".dibs")}


def test_the_folders_have_the_mode_of_the_board(scratch: Path) -> None:
    place = Place(scratch)
    place.path.chmod(0o2775)
    claim = claimed(place)
    claim.note("n")
    claim.keep_output(LIMIT).keep(b"o", 0)
    claim.done(b"r")
    for folder in FOLDERS:
        path = place.path / ".dibs" / folder
        assert path.stat().st_mode & 0o777 == (place.path / ".dibs").stat().st_mode & 0o777


@pytest.mark.parametrize("instead", INSTEAD)
@pytest.mark.parametrize("folder", FOLDERS)
def test_something_else_in_place_of_a_folder_is_never_followed(
    scratch: Path, folder: str, instead: str
) -> None:
    place, outside = Place(scratch), scratch / "outside"
    claim = claimed(place)
    outside.mkdir()
    (outside / claim.name).write_bytes(b"precious")
    path = place.path / ".dibs" / folder
    INSTEAD[instead](path, outside)
    writes: dict[str, Callable[[], object]] = {
        "notes": lambda: claim.note("n"),
        "logs": lambda: claim.keep_output(LIMIT).keep(b"o", 0),
        "results": lambda: claim.done(b"r"),
    }
    with pytest.raises(dibs.NotABoard, match="real folder"):
        writes[folder]()
    board = place.other()
    assert [entry.note for entry in board.entries()] == [""]
    assert [f.name for f in board.check() if f.fault] == [f".dibs/{folder}"]
    board.repair()
    board.reap()
    claim.done()
    board.purge(0)
    board.forget("x")
    assert (outside / claim.name).read_bytes() == b"precious"
    assert os.listdir(outside) == [claim.name]


@pytest.mark.parametrize("instead", INSTEAD)
def test_something_else_in_place_of_a_note_is_no_note(scratch: Path, instead: str) -> None:
    place, outside = Place(scratch), scratch / "outside"
    outside.write_bytes(b"secret")
    claim = claimed(place)
    claim.note("mine")
    path = place.path / ".dibs/notes" / claim.name
    path.unlink()
    INSTEAD[instead](path, outside)
    assert [e.note for e in place.other().entries()] == ["x" if instead == "file" else ""]
    claim.note("again")
    assert [e.note for e in place.other().entries()] == ["again"]
    assert outside.read_bytes() == b"secret"


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"\xff\xfe\x00", b"x" * 10_000, "ä".encode() * 5000, b"a\x1b[2Jb\nc\r"]
)
def test_whatever_a_note_contains_it_is_one_short_line(scratch: Path, data: bytes) -> None:
    place = Place(scratch)
    claim = claimed(place)
    claim.note("mine")
    (place.path / ".dibs/notes" / claim.name).write_bytes(data)
    (entry,) = place.other().entries()
    assert len(entry.note) <= 200
    assert "\n" not in entry.note
    claim.done()


@pytest.mark.parametrize("instead", ["link outside", "link to itself", "fifo"])
def test_output_and_results_are_never_written_or_read_through_a_link(
    scratch: Path, instead: str
) -> None:
    place, outside = Place(scratch), scratch / "outside"
    outside.write_bytes(b"secret")
    claim = claimed(place)
    for folder in ("logs", "results"):
        path = place.path / ".dibs" / folder
        path.mkdir()
        INSTEAD[instead](path / claim.name, outside)
    with pytest.raises(dibs.StorageError):
        claim.keep_output(LIMIT).keep(b"words", 0)
    with pytest.raises(dibs.StorageError):
        place.board.result(claim.task)
    assert outside.read_bytes() == b"secret"
    done = claim.done(b"42")
    assert place.board.result(done) == b"42"
    assert outside.read_bytes() == b"secret"


def test_quarters_that_say_anything_are_no_output(scratch: Path) -> None:
    place = Place(scratch)
    claim = claimed(place)
    keeper = claim.keep_output(LIMIT)
    keeper.keep(b"z" * 5000, 0)
    for number, data in (("1", b"from -1\nx"), ("2", b"\xff" * 100)):
        (place.path / f".dibs/logs/{claim.name}.{number}").write_bytes(data)
    found = place.board.output(claim.name)
    assert found is not None
    assert found.parts == ((0, b"z" * 2048),)


def test_a_note_that_was_left_by_a_crash_is_removed(scratch: Path) -> None:
    place = Place(scratch)
    claim = claimed(place)
    claim.done()
    (place.path / ".dibs/notes").mkdir()
    (place.path / ".dibs/notes" / claim.name).write_bytes(b"late\n")
    place.other().reap()
    live = claimed(place, "y")
    live.note("stays")
    (place.path / ".dibs/notes" / claim.name).write_bytes(b"late\n")
    place.other().check()
    assert below(place, "notes") == [live.name]


def test_files_of_others_are_reported_and_left_alone(scratch: Path) -> None:
    place = Place(scratch)
    names = []
    for folder in FOLDERS:
        (place.path / ".dibs" / folder).mkdir()
        for name in ("README", "x.available", "\x1b[2J"):
            (place.path / ".dibs" / folder / name).write_bytes(b"theirs")
            names.append(f".dibs/{folder}/{name}")
    place.advance(place.board.settings.keep_logs * 2)
    assert sorted(f.name for f in place.board.check()) == sorted(names)
    place.board.repair()
    place.board.reap()
    assert all((place.path / name).read_bytes() == b"theirs" for name in names)


def test_a_forget_keeps_what_the_next_life_left(scratch: Path) -> None:
    place = Place(scratch)
    first = claimed(place)
    first.keep_output(LIMIT).keep(b"first", 0)
    first.done(b"1")
    place.board.purge(0)
    (place.path / f".dibs/results/{first.name}").write_bytes(b"1")  # as if the purge had died
    place.board.forget("x")
    assert below(place, "results") == []
    again = claimed(place)
    again.done(b"2")
    place.board.reap()
    assert below(place, "results") == [again.name]


def test_a_read_only_board_shows_notes_results_and_output(scratch: Path) -> None:
    place = Place(scratch)
    claim = claimed(place)
    claim.note("doing")
    claim.keep_output(LIMIT).keep(b"words", 0)
    board = dibs.open(place.path, read_only=True)
    assert [entry.note for entry in board.entries()] == ["doing"]
    found = board.output(claim.name)
    assert found is not None
    assert found.parts == ((0, b"words"),)
    with pytest.raises(dibs.ReadOnly):
        board.attach(claim.name).note("no")
    assert board.result(claim.done(b"42")) == b"42"


def test_shells_note_as_python_does(fleet: Fleet) -> None:
    fleet.add("x")
    name = fleet.sh("next_task && note_task '  epoch   3\tof 10 '").split()[0]
    (entry,) = fleet.board().entries()
    assert entry.note == "epoch 3 of 10"
    fleet.sh("done_task", DIBS_CLAIM=name)
    assert fleet.board().log.of("x")[-1].note == "epoch 3 of 10"
    assert os.listdir(fleet.path / ".dibs/notes") == []
    done = fleet.run(f"DIBS_CLAIM={name} note_task late")
    assert done.returncode == 5
    assert os.listdir(fleet.path / ".dibs/notes") == []
    assert fleet.board().check() == []


def test_a_shell_ends_a_claim_that_python_noted(fleet: Fleet) -> None:
    fleet.add("x")
    claim = fleet.board().claim("x", owner="me")
    assert claim is not None
    claim.note('half "done" \\ ü')
    fleet.sh("return_task", DIBS_CLAIM=claim.name)
    assert fleet.board().log.of("x")[-1].note == 'half "done" \\ ü'


def test_a_shell_refuses_a_note_that_is_too_long(fleet: Fleet) -> None:
    fleet.add("x")
    name = fleet.sh("next_task")
    assert fleet.run(f"DIBS_CLAIM={name} note_task {'x' * 201}").returncode == 2
    fleet.sh(f"note_task {'ü' * 200}", DIBS_CLAIM=name)
    assert [entry.note for entry in fleet.board().entries()] == ["ü" * 200]
    fleet.sh("note_task ''", DIBS_CLAIM=name)
    assert [entry.note for entry in fleet.board().entries()] == [""]


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ('run_log = "64k"', "run_log", 65536),
        ("run_log = 4096", "run_log", 4096),
        ('run_timeout = "2h"', "run_timeout", 7200),
        ("run_idle = 1.5", "run_idle", 1.5),
        ('keep_logs = "1d"', "keep_logs", 86_400),
        ('ttl = "60s"', "ttl", 60),
        ('ttl = "1d"', "ttl", 86_400),
        ('plain_ttl = "10m"', "plain_ttl", 600),
    ],
)
def test_settings_take_times_and_sizes(line: str, field: str, value: float) -> None:
    found = load(f"format = 2\n{line}\n".encode())
    assert getattr(found, field) == value
    assert load(dump(found)) == found


@pytest.mark.parametrize(
    "line", ["run_log = 1", "run_log = true", 'run_log = "much"', "run_idle = -1", "keep_logs = []",
             'run_timeout = "soon"', "run_timeout = inf", "run_timeout = nan",
             'ttl = "0.5s"', 'ttl = "25h"', 'ttl = "soon"', "ttl = [60]"]
)  # fmt: skip
def test_a_setting_that_is_neither_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(dibs.BadSettings, match="line 2"):
        load(f"format = 2\n{line}\n".encode())


def test_control_characters_of_output_are_shown() -> None:
    assert output_text(b"a\x1b[31m\tb\r\n\x07\xff") == "a\\x1b[31m\tb\\x0d\n\\x07\ufffd"
