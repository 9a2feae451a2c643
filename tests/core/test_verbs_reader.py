"""The reader's verbs: snapshot, view, journal; and what the board's files look like."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs.cli.refusal import status
from dibs.model.settings import DEFAULT_TOML
from tests.contract.test_verbs_reader import populate
from tests.core.tools import NOBODY, News, Place, give, in_child, settle

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")


def test_a_snapshot_shows_everything_at_once(place: Place) -> None:
    claim = populate(place.board)
    (place.path / "notes.txt").touch()
    (place.path / "wait.lock").touch()
    snapshot = place.board.snapshot()
    assert sorted(task.id for task in snapshot.tasks.values()) == [
        *("door", "gate", "mine", "over", "sunk", "wait")
    ]
    assert snapshot.counts() == {
        **{"available": 1, "claimed": 1, "stale": 0, "failed": 1, "done": 1, "free": 1, "held": 1},
        **{"later": 0, "asked": 0},
    }
    assert (snapshot.exact, snapshot.strangers) == (True, 1)
    assert not snapshot.holders[claim.task.name].flaw
    assert snapshot.age("wait.available") is None
    assert not snapshot.stale(claim.task.name)


def test_the_holder_of_a_plain_claim_is_in_its_lock(place: Place) -> None:
    (place.path / "x.claimed").touch()
    (place.path / "x.lock").write_text("1773756090 web-2\n")
    (row,) = place.board.entries()
    assert (row.owner, row.host) == ("web-2", "web-2")


def test_ages_are_never_negative(place: Place) -> None:
    claim = populate(place.board)
    place.world.step(-500)
    assert place.board.snapshot().age(claim.task.name) == 0


def test_a_look_at_a_directory_that_is_not_yet_a_board_leaves_no_trace(board_dir: Path) -> None:
    (board_dir / "x.available").touch()
    board = dibs.open(board_dir)
    assert list(board.snapshot().tasks) == ["x.available"]
    assert board.find("x")
    assert board.log.of("x") == []
    assert board.status("door").held is False
    assert os.listdir(board_dir) == ["x.available"]


@as_root
def test_a_board_that_cannot_be_written_shows_its_ages_as_inexact(scratch: Path) -> None:
    path = scratch / "board"
    settle(path)
    claim = populate(dibs.open(path))
    path.chmod(0o755)

    def look() -> tuple[bool, float | None, dict[str, int]]:
        board = dibs.open(path)
        snapshot = board.snapshot()
        acts: list[Callable[[], object]] = [
            lambda: board.add("new"),
            lambda: board.claim("wait"),
            lambda: board.claim(),
            lambda: board.acquire("gate"),
            lambda: board.park("wait.available", "why"),
            lambda: board.force_release(claim.name, "why"),
            lambda: board.prioritize("wait.available", 9),
            lambda: board.attach(claim.name).done(),
            lambda: board.attach(claim.name).release(),
            lambda: board.purge(0),
        ]
        for act in acts:
            with pytest.raises(dibs.ReadOnly):
                act()
        assert board.find("mine")
        assert board.payload(board.find("wait")[0]) == b"wait"
        assert board.log.of("mine")
        return snapshot.exact, snapshot.age(claim.task.name), snapshot.counts()

    for entry in path.rglob("*"):
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    before = sorted(str(p) for p in path.rglob("*"))
    exact, age, counts = in_child(look, uid=NOBODY)
    assert (exact, counts["claimed"]) == (False, 1)
    assert age is not None
    assert age >= 0
    assert sorted(str(p) for p in path.rglob("*")) == before


@as_root
@pytest.mark.parametrize("mode", [0o770, 0o750, 0o2770, 0o777])
def test_everything_below_dibs_has_the_boards_mode_and_group(scratch: Path, mode: int) -> None:
    path = scratch / "board"
    path.mkdir()
    os.chown(path, NOBODY, 12345)
    path.chmod(mode)
    in_child(lambda: populate(dibs.open(path, create=True)).name, umask=0o077)
    found = [*(path / ".dibs").rglob("*"), path / "done", path / "failed"]
    assert len(found) > 20
    for entry in found:
        status = entry.stat()
        wanted = mode & 0o777 if entry.is_dir() else mode & 0o666
        assert (entry, oct(status.st_mode & 0o777)) == (entry, oct(wanted))
        assert (entry, status.st_gid) == (entry, 12345)


@as_root
def test_agents_of_two_uids_in_one_group_work_together(scratch: Path) -> None:
    path = scratch / "board"
    path.mkdir()
    path.chmod(0o777)
    give(path, NOBODY)
    first = in_child(lambda: populate(dibs.open(path, create=True)).name, uid=NOBODY, umask=0o077)

    def other() -> list[str]:
        board = dibs.open(path)
        board.attach(first).beat()
        board.attach(first).fail()
        board.acquire("gate").release()
        claim = board.claim("wait")
        assert claim is not None
        claim.done()
        board.reap()
        return [finding.kind for finding in board.check()]

    assert in_child(other, uid=NOBODY - 1, umask=0o077) == []


def test_a_sticky_directory_is_refused_with_the_reason(board_dir: Path) -> None:
    board_dir.chmod(0o1777)
    with pytest.raises(dibs.NotABoard, match="sticky"):
        dibs.open(board_dir, create=True)
    assert os.listdir(board_dir) == []


@pytest.mark.parametrize("verb", ["add", "claim", "acquire", "reap"])
def test_no_verb_makes_a_board_of_a_sticky_directory(board_dir: Path, verb: str) -> None:
    (board_dir / "x.available").touch()
    board_dir.chmod(0o1777)
    board = dibs.open(board_dir)
    acts = {
        "add": lambda: board.add("y"),
        "acquire": lambda: board.acquire("door"),
        "claim": board.claim,
        "reap": board.reap,
    }
    with pytest.raises(dibs.NotABoard, match="sticky"):
        acts[verb]()
    assert [finding.kind for finding in board.check()] == ["sticky"]
    assert os.listdir(board_dir) == ["x.available"]


def test_a_board_that_became_sticky_works_and_check_reports_it(board_dir: Path) -> None:
    dibs.open(board_dir).add("x")
    board_dir.chmod(0o1777)
    board = dibs.open(board_dir)
    assert [finding.kind for finding in board.check()] == ["sticky"]
    assert board.claim() is not None
    board_dir.chmod(0o755)
    assert board.check() == []


def test_a_new_board_has_a_settings_file(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "a/b", create=True)
    assert board.settings == dibs.Settings()
    assert dibs.open(tmp_path / "a/b").settings == dibs.Settings()
    assert stat.S_ISREG((tmp_path / "a/b/.dibs/board.toml").stat().st_mode)


@pytest.mark.parametrize("path", ["nowhere", "file/below", "a\0b"])
def test_a_missing_board_is_reported(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(dibs.StorageError):
        dibs.open(f"{tmp_path}/{path}")


def test_a_file_is_no_board(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for create in (False, True):
        with pytest.raises(dibs.NotABoard):
            dibs.open(tmp_path / "file", create=create)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ("format = 99", dibs.NewerFormat),
        ("format = 'next'", dibs.NewerFormat),
        ("ttl = 'soon'", dibs.BadSettings),
        ("colour = 1", dibs.BadSettings),
        ("ttl =", dibs.BadSettings),
        (f"# {'x' * 70_000}", dibs.BadSettings),
        (None, dibs.BadSettings),
    ],
)
def test_invalid_settings_have_their_own_error(
    place: Place, settings: str | None, kind: type[dibs.NotABoard]
) -> None:
    toml = place.path / ".dibs/board.toml"
    toml.unlink(missing_ok=True)
    if settings is None:
        os.mkfifo(toml)
    else:
        toml.write_text(settings)
    with pytest.raises(kind, match=r"board\.toml") as caught:
        dibs.open(place.path)
    assert status(caught.value) == "not-a-board", "the word in scripts stays"


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("max_attempts = 3", "line 8: max_attempts is already set on line 4"),
        ('retry = [\n  "5s",\n]', "line 8: retry is already set on line 7"),
        ("[[hooks]]\nname = 'a'\nretry = []\nname = 'b'", "line 11: name is already set on line 9"),
    ],
)
def test_a_setting_that_is_there_twice_is_named_with_both_lines(
    place: Place, added: str, said: str
) -> None:
    (place.path / ".dibs/board.toml").write_bytes(DEFAULT_TOML + added.encode())
    with pytest.raises(dibs.BadSettings, match=rf"board\.toml {said}: correct or remove it"):
        dibs.open(place.path)


def test_a_board_that_cannot_be_made_is_reported_with_what_to_do() -> None:
    with pytest.raises(dibs.BoardMissing, match=r"cannot be made: .*: make it with the rights"):
        dibs.open("/proc/board", create=True)


def test_a_board_that_is_removed_meanwhile_is_reported(place: Place) -> None:
    place.path.rename(place.path.with_name("elsewhere"))
    acts: list[Callable[[], object]] = [
        place.board.snapshot,
        place.board.claim,
        place.board.reap,
        place.board.check,
        lambda: place.board.find("x"),
        lambda: place.board.add("x"),
        lambda: place.board.acquire("x"),
    ]
    for act in acts:
        with pytest.raises(dibs.DibsError):
            act()
    assert not place.path.exists()


def test_a_scan_reports_what_came_and_went(place: Place) -> None:
    view = place.board.view()
    assert not view.scan()
    place.board.add("x")
    change = view.scan()
    assert [task.name for task in change.added] == ["x.available"]
    claim = place.board.claim("x")
    assert claim is not None
    change = view.scan()
    assert (change.added, [t.name for t in change.removed]) == ((claim.task,), ["x.available"])
    ended = claim.done()
    change = view.scan()
    assert (change.added, change.removed) == ((ended,), (claim.task,))
    assert not view.scan()


def test_a_hint_costs_one_look_at_its_name(place: Place) -> None:
    view = place.board.view()
    place.board.add("x")
    place.board.add("y")
    change = view.hint(["x.available", "nothing.available", "notes.txt"])
    assert [task.id for task in change.added] == ["x"]
    assert list(view.tasks) == ["x.available"]
    (place.path / "x.available").unlink()
    assert [task.id for task in view.hint(["x.available"]).removed] == ["x"]
    assert view.tasks == {}


@pytest.mark.parametrize("path", ["", ".", "..", "../canary.available", "a\0b.available", "a/b"])
def test_a_hint_with_an_invalid_name_changes_nothing(place: Place, path: str) -> None:
    (place.path.parent / "canary.available").touch()
    view = place.board.view()
    assert not view.hint([path])
    assert (view.tasks, view.strangers) == ({}, set())


def test_unknown_files_are_counted_until_they_are_removed(place: Place) -> None:
    view = place.board.view()
    (place.path / "notes.txt").touch()
    assert not view.scan()
    assert view.snapshot().strangers == 1
    (place.path / "notes.txt").unlink()
    view.scan()
    assert view.snapshot().strangers == 0


def test_the_journal_lists_events_in_order(place: Place) -> None:
    claim = populate(place.board)
    claim.fail("flaky")
    events = place.board.log.of("mine")
    assert [event.verb for event in events] == ["add", "claim", "fail"]
    assert events[1].dst == events[2].src == claim.task.name
    assert events[2].reason == "flaky"
    assert len(place.board.log.read()) > len(events)


def test_a_torn_last_line_is_skipped_until_it_is_complete(place: Place) -> None:
    place.board.add("x")
    (file,) = (place.path / ".dibs/journal").iterdir()
    event = json.loads(file.read_text()) | {"verb": "claim"}
    line = json.dumps(event).encode() + b"\n"
    news = News(place.board.log)
    with open(file, "ab", buffering=0) as tail:
        tail.write(line[:20])
        assert [e.verb for e in news()] == ["add"]
        assert [e.verb for e in place.board.log.of("x")] == ["add"]
        tail.write(line[20:])
    assert [e.verb for e in news()] == ["claim"]
    assert [e.verb for e in place.board.log.of("x")] == ["add", "claim"]


def test_a_line_after_a_torn_one_is_not_lost(place: Place) -> None:
    place.board.add("x")
    (file,) = (place.path / ".dibs/journal").iterdir()
    with open(file, "ab") as tail:
        tail.write(b'{"at": 1, "verb": "cl')
    place.another()[0].park("x.available", "why")
    assert [event.verb for event in place.board.log.of("x")] == ["add", "park"]
