"""A board is copied between engines: all of it or nothing, and both are compared."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import dibs
from dibs.copying import copy
from dibs.model.settings import dump
from tests.contract.command import CORE, Command
from tests.core.conftest import fast
from tests.patience import PATIENCE
from tests.postgres.boards import new_site
from tests.postgres.cluster import Server

HOSTILE = (
    *("e\udcffx", "a\x1b[31mred", "..", "x.y/z", "ünï\u202ecode"),
    *("q'; DROP SCHEMA dibs;--", "=1F2"),
)
TEXT = 'line\none\x00 \udcfe \\u0041 "quoted" \u2028'
WAYS = [("files", "files"), ("files", "postgres"), ("postgres", "files"), ("postgres", "postgres")]
_numbers = count(1)


class Places:
    """Places for boards of both engines."""

    def __init__(self, server: Server, scratch: Path) -> None:
        self._server = server
        self._scratch = scratch

    def new(self, engine: str) -> str:
        """A place without a board."""
        if engine == "files":
            return str(self._scratch / f"board-{next(_numbers)}")
        return self._server.create(f"copy_{next(_numbers)}")

    def board(self, engine: str) -> dibs.Board:
        """An empty board with other settings than the defaults."""
        settings = dibs.Settings(ttl=77, durability="off", retry=(), run_log=8192)
        if engine == "postgres":
            return new_site(self._server, settings).board
        where = self.new(engine)
        folder = Path(where) / ".dibs"
        folder.mkdir(parents=True)
        (folder / "board.toml").write_bytes(dump(settings))
        return dibs.open(where, create=True)


@pytest.fixture
def places(shared_server: Server) -> Iterator[Places]:
    with TemporaryDirectory(prefix="dibs-", dir=fast()) as scratch:
        yield Places(shared_server, Path(scratch))


def claimed(board: dibs.Board, ident: str) -> dibs.Claim:
    claim = board.claim(ident, owner="web-3")
    assert claim is not None
    return claim


def fill(board: dibs.Board) -> None:
    """Every state, every kind of content, and texts that try to break out."""
    for ident in HOSTILE:
        board.add(ident, bytes(range(256)))
    board.add("plain", b"")
    board.add("urgent", b"now", priority=9)
    board.add("large", bytes(range(256)) * 12_000)
    board.add("later", b"then", start_in=86_000)
    board.add("done", b"x")
    claim = claimed(board, "done")
    keeper = claim.keep_output(8192)
    keeper.keep(b"beginning\n", 0)
    keeper.keep(b"after a gap" * 300, 20_000)
    claim.note("half way")
    claim.done(b"result \x00\xff")
    board.add("failed")
    for _ in range(board.settings.max_attempts):
        claimed(board, "failed").fail(TEXT)
    board.add("retried")
    claimed(board, "retried").fail("once")
    board.add("parked")
    board.park("parked.available", TEXT.replace("\udcfe", ""), by="ada")
    board.add("asked")
    board.answer(claimed(board, "asked").ask("which\n\x1b branch?").name, "main")
    claimed(board, "asked").ask("and which commit?")
    for ident in ("purged", "forgotten", "again"):
        board.add(ident, b"old")
        claimed(board, ident).done(b"gone")
        board.purge(0) if ident != "purged" else None
        if ident != "purged":
            board.forget(ident)
    board.add("again", b"second life")
    board.acquire("lock", owner="web-3").release()
    board.acquire("gpu", slots=3, owner="web-3").release()
    board.log.note("report", TEXT)


def test_a_board_is_not_copied_to_itself_by_another_name(places: Places, tmp_path: Path) -> None:
    files, database = places.board("files"), places.board("postgres")
    (tmp_path / "link").symlink_to(files.location.where)
    for board, other in (
        (files, str(tmp_path / "link")),
        (database, f"{database.location.where}&application_name=other"),
        (database, database.location.where.replace("postgresql://", "postgres://")),
    ):
        with pytest.raises(dibs.BadName, match="are the same board"):
            copy(board.location.where, other)
    assert not copy(quiet(files).location.where, places.new("postgres")).before


def quiet(board: dibs.Board) -> dibs.Board:
    board.pause_claims("moving", locks=True)
    return board


def content(board: dibs.Board) -> dict[str, object]:
    """What a user sees of a board, but for ages."""
    found: dict[str, object] = {}
    for name, task in board.snapshot().tasks.items():
        found[name] = (
            b"" if task.kind == "lock" else board.payload(task, 1 << 24),
            board.result(task),
            board.questions(task),
            [(kept.claim, board.output(kept.claim)) for kept in board.outputs(task.id)],
            [event[1:] for event in board.log.of(task.id)],
        )
    found["pauses"] = board.pauses()
    found["settings"] = board.settings
    found["board's own events"] = [e[1:] for e in board.log.oldest_first() if not e.id]
    return found


@pytest.mark.parametrize(("source", "target"), WAYS)
def test_a_copy_has_everything_and_works_on(places: Places, source: str, target: str) -> None:
    board = places.board(source)
    fill(board)
    quiet(board)
    before = content(board)
    place = places.new(target)
    done = copy(board.location.where, place)
    assert not done.before
    assert not done.omitted
    assert done.content.states["gone"] >= 1
    other = dibs.open(place)
    assert content(other) == before == content(board)
    assert not other.check()
    with pytest.raises(dibs.Paused):
        other.claim()
    other.resume_claims([pause.name for pause in other.pauses()])
    old = {task.id: task.fence for task in board.snapshot().tasks.values()}
    while (claim := other.claim(owner="new")) is not None:
        assert claim.fence == old[claim.id] + 1
        claim.done()
    assert other.acquire("lock", owner="new").fence == old["lock"] + 1
    for ident in ("purged", "done", *HOSTILE):
        with pytest.raises(dibs.Exists):
            other.add(ident)
    other.add("forgotten")
    claim = other.claim("forgotten")
    assert claim is not None
    assert claim.fence > 1
    assert other.undo("parked") is not None


@pytest.mark.parametrize(("source", "target"), WAYS)
def test_a_second_copy_writes_nothing_and_a_changed_one_is_refused(
    places: Places, source: str, target: str
) -> None:
    board = places.board(source)
    fill(board)
    quiet(board)
    place = places.new(target)
    first = copy(board.location.where, place)
    again = copy(board.location.where, place)
    assert again.before
    assert again.content == first.content
    dibs.open(place).add("new")
    with pytest.raises(dibs.Refused, match="new"):
        copy(board.location.where, place)
    assert dibs.open(place).find("new")


@pytest.mark.parametrize(("source", "target"), WAYS)
def test_there_and_back_is_the_same_board(places: Places, source: str, target: str) -> None:
    board = places.board(source)
    fill(board)
    quiet(board)
    there, back = places.new(target), places.new(source)
    first = copy(board.location.where, there)
    second = copy(there, back)
    assert first.content == second.content
    assert content(dibs.open(back)) == content(board)


@pytest.mark.parametrize("engine", ["files", "postgres"])
def test_a_live_board_is_refused_and_nothing_is_written(places: Places, engine: str) -> None:
    board, place = places.board(engine), places.new("files")
    board.add("a")
    with pytest.raises(dibs.Refused, match="is not paused"):
        copy(board.location.where, place)
    board.pause_claims("only here", locks=True, host="web-1")
    board.pause_claims("not the locks")
    with pytest.raises(dibs.Refused, match="is paused without its locks"):
        copy(board.location.where, place)
    board.resume_claims([pause.name for pause in board.pauses()])
    claim = claimed(board, "a")
    quiet(board)
    with pytest.raises(dibs.Refused, match=r"is held: .* reap` if its holder is gone"):
        copy(board.location.where, place)
    claim.release()
    assert not os.path.lexists(place)
    copy(board.location.where, place)


def test_shell_claims_count_as_held_and_shell_names_are_copied(places: Places) -> None:
    board, place = places.board("files"), places.new("postgres")
    folder = Path(board.location.where)
    (folder / "report.v2.available").write_bytes(b"from a shell")
    (folder / "busy.claimed-by-web").write_bytes(b"")
    (folder / "stranger").write_bytes(b"")
    quiet(board)
    with pytest.raises(dibs.Refused, match="is held"):
        copy(folder, place)
    (folder / "busy.claimed-by-web").unlink()
    assert copy(folder, place).omitted == ("1 file that is no task: stranger",)
    other = dibs.open(place)
    (task,) = other.find("report.v2")
    assert other.payload(task) == b"from a shell"


def test_a_board_that_changes_meanwhile_is_not_copied(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dibs.postgres import copying

    board, place = places.board("files"), places.new("postgres")
    board.add("a")
    quiet(board)
    write = copying.PostgresWriter.write

    def late(self: copying.PostgresWriter, reader: object) -> None:
        write(self, reader)  # type: ignore[arg-type]
        board.add("b")

    monkeypatch.setattr(copying.PostgresWriter, "write", late)
    with pytest.raises(dibs.Refused, match="changed while it was copied"):
        copy(board.location.where, place)
    with pytest.raises(dibs.BoardMissing):
        dibs.open(place)
    monkeypatch.undo()
    assert copy(board.location.where, place).content.states == {"available": 2}


@pytest.mark.parametrize("target", ["files", "postgres"])
def test_a_killed_copy_leaves_no_board_and_the_next_one_is_complete(
    places: Places, target: str
) -> None:
    board, place = places.board("files"), places.new(target)
    for number in range(2000):
        board.add(f"t{number}", b"x" * 100)
    quiet(board)
    finished = 0
    for delay in (0.15, 0.3, 0.45, 0.6, 0.8):
        child = subprocess.Popen(
            [sys.executable, "-m", "dibs", "copy", board.location.where, place],
            env=os.environ | {"PYTHONPATH": str(CORE)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)  # a kill at any moment is the point of this test
        child.kill()
        finished += child.wait(PATIENCE) == 0
        try:
            there = dibs.open(place)
        except dibs.BoardMissing:
            continue
        assert len(there.snapshot().tasks) == 2000
        finished += 1
    assert copy(board.location.where, place).content.states == {"available": 2000}
    if target == "files":
        assert not os.path.lexists(f"{place}.copying")
        assert not dibs.open(place).check()


def test_of_two_copies_to_one_directory_one_is_refused(places: Places) -> None:
    from dibs.board import engine_of

    board, place = places.board("files"), places.new("files")
    quiet(board)
    with (
        engine_of(place).writer(place),
        pytest.raises(dibs.Refused, match="another copy"),
    ):
        copy(board.location.where, place)
    copy(board.location.where, place)


def test_a_directory_that_no_copy_made_is_left_alone(places: Places) -> None:
    board, place = places.board("files"), places.new("files")
    quiet(board)
    mine = Path(f"{place}.copying")
    mine.mkdir()
    (mine / "mine").touch()
    with pytest.raises(dibs.Refused, match="was not made by a copy"):
        copy(board.location.where, place)
    assert (mine / "mine").exists()


def test_the_command_says_what_both_have(places: Places) -> None:
    board, place = places.board("files"), places.new("postgres")
    board.add("a", b"abc")
    quiet(board)
    command = Command(board.location.where, process=True)
    said = command("copy", board.location.where, place)
    assert "is copied to postgresql://" in said
    assert "1 available, 3 bytes of payload, 2 events" in said
    assert "was copied already" in command("copy", board.location.where, place)
    assert '"status": "current"' in command("--json", "copy", board.location.where, place)
    assert "same board" in command("copy", place, place, code=2)
