"""The files of pauses: invalid and hostile ones, incomplete steps, and a disk that fails."""

from __future__ import annotations

import errno
import os

import pytest

import dibs
from dibs.files.disk import Disk
from dibs.files.port import Stat
from dibs.model.names import PAUSED
from dibs.model.pauses import Pause, encode_pause
from tests.core.test_incomplete_steps import dying
from tests.core.tools import SECOND, Killed, Movable, Place

pytestmark = pytest.mark.fast("dibs.files")
NAME = "0123456789"


def put(place: Place, data: bytes, name: str = NAME) -> None:
    (place.path / PAUSED).mkdir(exist_ok=True)
    (place.path / PAUSED / name).write_bytes(data)


def valid(**terms: object) -> bytes:
    return encode_pause(Pause(NAME, "ada", "deploy", 1.0)._replace(**terms))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        valid()[:-9],
        valid() + b" " * 9000,
        valid().replace(b'"v": 1', b'"v": 2'),
        valid().replace(b'"at": 1.0', b'"at": "soon"'),
        valid(until=5.0).replace(b"5.0", b"NaN"),
        valid(until=5.0).replace(b"5.0", b"-1"),
        valid(host="web").replace(b'"web"', b"[]"),
        valid(host="web").replace(b'"web"', b'"two words"'),
        valid(locks=True).replace(b"true", b'"yes"'),
        valid(reason="x").replace(b'"x"', b"7"),
        b"[" * 8000,
    ],
    ids=range(13),
)
def test_an_invalid_file_pauses_nothing_and_is_reported(place: Place, data: bytes) -> None:
    put(place, data)
    place.board.add("a")
    assert place.board.pauses() == ()
    assert place.board.claim() is not None
    assert [(f.kind, f.name) for f in place.board.check()] == [("stranger", f"{PAUSED}/{NAME}")]
    assert place.board.repair() != []


@pytest.mark.parametrize("name", ["x", "0123456789.tmp", "012345678g", "abcdef0123", "é"])
def test_a_file_with_another_name_pauses_nothing(place: Place, name: str) -> None:
    put(place, valid(), name)
    place.board.add("a")
    assert place.board.claim() is not None


def test_a_folder_a_link_and_a_fifo_are_no_pauses(place: Place) -> None:
    (place.path / "elsewhere").write_bytes(valid())
    (place.path / PAUSED).mkdir()
    (place.path / PAUSED / NAME).mkdir()
    (place.path / PAUSED / NAME[::-1]).symlink_to(place.path / "elsewhere")
    os.mkfifo(place.path / PAUSED / "AAAAAAAAAA")
    place.board.add("a")
    assert place.board.claim() is not None
    found = [f.name for f in place.board.check() if f.name.startswith(PAUSED)]
    assert len(found) == 3


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_what_is_no_folder_pauses_nothing_and_the_board_cannot_be_paused(
    place: Place, kind: str
) -> None:
    where = place.path / PAUSED
    if kind == "file":
        where.write_bytes(b"")
    else:
        target = place.path.parent / "other"
        if kind == "link":
            target.mkdir()
            (target / NAME).write_bytes(valid())
        where.symlink_to(target)
    place.board.add("a")
    with pytest.raises(dibs.StorageError):
        place.board.pause_claims("deploy")
    assert place.board.claim() is not None
    assert place.board.snapshot().pauses == ()


def test_text_of_a_pause_is_shown_without_control_characters(place: Place) -> None:
    put(place, valid(by="a\x1b[2Jb", reason="x\n\u202ey\x9b0m"))
    place.board.add("a")
    with pytest.raises(dibs.Paused) as caught:
        place.board.claim()
    assert str(caught.value).isprintable()


def test_a_claim_that_meets_a_pause_after_its_rename_is_requeued(place: Place) -> None:
    place.board.add("a", b"one", priority=7)
    worker, port = place.another()
    port.after["rename"] = lambda src: put(place, valid()) if src == "a.f0p7.available" else None
    with pytest.raises(dibs.Paused):
        worker.claim(owner="me")
    assert place.names() == ["a.f1p7.available"]
    assert place.records() == []
    with pytest.raises(dibs.Paused):  # the pause was seen: from now on it looks before the rename
        worker.claim()
    assert place.names() == ["a.f1p7.available"]
    (place.path / PAUSED / NAME).unlink()
    claim = worker.claim()
    assert claim is not None
    assert (claim.fence, claim.payload(), claim.task.attempts) == (2, b"one", 0)


def test_a_look_that_fails_gives_the_task_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.board.add("a")
    looks = iter([True])

    def missing(_: Movable, path: str) -> bool:
        if path != PAUSED or next(looks, False):
            return True
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(Movable, "missing", missing)
    with pytest.raises(dibs.StorageError) as caught:
        place.board.claim()
    assert caught.value.exit_code == 1
    assert place.names() == ["a.f1.available"]


@pytest.mark.parametrize("left", ["", "again", "for good"])
def test_a_pause_that_another_host_removes_during_the_look_is_looked_for_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """An NFS client has a stale handle of a file that another client has removed."""
    place.board.add("a")
    put(place, valid())
    read = Movable.read
    reads = 0

    def stale(self: Movable, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        nonlocal reads
        if not path.startswith(PAUSED):
            return read(self, path, limit, offset)
        reads += 1
        if left != "for good":
            (place.path / path).unlink()
        if left == "again":
            put(place, valid(reason="another one"), "00000000F2")
            monkeypatch.setattr(Movable, "read", read)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)

    monkeypatch.setattr(Movable, "read", stale)
    if left == "for good":  # it is unknown whether there is a pause
        with pytest.raises(dibs.StorageError):
            place.board.claim()
        assert reads > 1
    elif left == "again":
        with pytest.raises(dibs.Paused, match="another one"):
            place.board.claim()
    else:
        assert place.board.claim() is not None


def test_a_claim_that_cannot_be_requeued_is_uncertain(place: Place) -> None:
    place.board.add("a")
    worker, port = place.another()

    def paused_and_added_again(src: str) -> None:
        if src == "a.available":
            put(place, valid())
            (place.path / "a.f1.available").write_bytes(b"by a shell")

    port.after["rename"] = paused_and_added_again
    with pytest.raises(dibs.Uncertain):
        worker.claim()
    assert (place.path / "a.f1.available").read_bytes() == b"by a shell"


def test_an_interrupt_during_the_look_gives_the_task_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.board.add("a")
    looks = iter([True])

    def missing(_: Movable, path: str) -> bool:
        if path != PAUSED or next(looks, False):
            return True
        raise KeyboardInterrupt

    monkeypatch.setattr(Movable, "missing", missing)
    with pytest.raises(KeyboardInterrupt):
        place.board.claim()
    assert place.names() == ["a.f1.available"]


def test_an_empty_folder_is_removed_by_a_janitor_or_a_repair(place: Place) -> None:
    dying(place, "link", f"{PAUSED}/", lambda board: board.pause_claims("deploy"))
    assert list((place.path / PAUSED).iterdir()) == []
    assert place.board.claim() is None
    assert [f.kind for f in place.board.check()] == ["draft"]
    assert place.board.repair() == []
    assert not (place.path / PAUSED).exists()
    (place.path / PAUSED).mkdir()
    place.board.reap()
    assert not (place.path / PAUSED).exists()


def test_a_resume_that_dies_before_it_removes_the_folder_is_completed(place: Place) -> None:
    pause, _ = place.board.pause_claims("deploy")
    board, port = place.another()

    def die(path: str) -> None:
        raise Killed(path)

    port.rmdir = die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        board.resume_claims([pause.name])
    place.board.add("a")
    assert place.board.claim() is not None
    place.board.reap()
    assert not (place.path / PAUSED).exists()


def test_a_pause_makes_the_folder_again_that_a_resume_removes_meanwhile(place: Place) -> None:
    board, port = place.another()
    removed = iter([True])

    def remove(path: str) -> None:
        if path.startswith(f"{PAUSED}/") and next(removed, False):
            os.rmdir(place.path / PAUSED)

    port.before["link"] = remove
    pause, _ = board.pause_claims("deploy")
    assert place.board.pauses() == (pause,)


def test_a_pause_that_cannot_touch_the_board_is_taken_back(place: Place) -> None:
    board, port = place.another()

    def fail(path: str) -> None:
        if not path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    port.before["touch"] = fail
    with pytest.raises(dibs.StorageError):
        board.pause_claims("deploy")
    assert not (place.path / PAUSED).exists()


def test_a_lost_reply_to_a_resume_counts_as_a_resume(place: Place) -> None:
    pause, _ = place.board.pause_claims("deploy")
    board, port = place.another()
    real = port.unlink

    def unlink(path: str) -> None:
        real(path)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    port.unlink = unlink  # type: ignore[method-assign]
    assert board.resume_claims([pause.name]) == (pause,)
    assert place.board.pauses() == ()


def test_a_pause_that_has_ended_is_reported_and_removed(place: Place) -> None:
    place.board.pause_claims("lunch", seconds=5, by="ann")
    place.advance(9)
    (finding,) = place.board.check()
    assert (finding.kind, finding.fault) == ("pause", False)
    assert finding.text == "the pause of the board by ann ended 4s ago: lunch"
    assert place.board.repair() == []
    assert not (place.path / PAUSED).exists()


def test_shell_claims_of_the_time_of_a_pause_are_counted(place: Place) -> None:
    for name in ("a", "b", "c"):
        (place.path / f"{name}.available").write_bytes(b"")
    (place.path / "a.available").rename(place.path / "a.claimed")
    place.world.advance(5)
    place.board.pause_claims("deploy")
    assert place.board.snapshot().shell_claims == 0
    place.world.advance(5)
    (place.path / "b.available").rename(place.path / "b.claimed")
    assert place.board.snapshot().shell_claims == 1


def test_without_a_pause_a_claim_looks_twice_in_a_second_and_lists_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    real = Movable.missing

    def missing(port: Movable, path: str) -> bool:
        looked.append(path)
        return real(port, path)

    monkeypatch.setattr(Movable, "missing", missing)
    for n in range(3):
        place.board.add(f"a{n}")
    for _ in range(3):
        claim = place.board.claim()
        assert claim is not None
        claim.done()
    assert looked.count(PAUSED) == 4  # one before the renames, and one after each
    place.world.boot += SECOND
    assert place.board.claim() is None
    assert looked.count(PAUSED) == 5


@pytest.mark.parametrize("quick", [True, False])
def test_a_name_is_missing_only_if_the_disk_says_so(place: Place, *, quick: bool) -> None:
    disk = Disk(str(place.path))
    assert disk.missing("nothing")
    disk._quick = quick
    assert disk.missing("nothing")
    assert not disk.missing(".dibs")
    if not quick:
        with pytest.raises(OSError, match="Not a directory"):
            disk.missing(".dibs/board.toml/x")


@pytest.mark.parametrize("call", ["create", "mkdir"])
def test_a_pause_that_a_full_disk_refuses_leaves_nothing_and_pauses_nothing(
    place: Place, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = place.world.boot

    def full(path: str, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(place.port, call, full)
    with pytest.raises(dibs.StorageError, match="free some space"):
        place.board.pause_claims("deploy")
    assert not (place.path / PAUSED).exists()
    assert place.world.boot == start, "it did not try again: the disk has refused it"
    assert place.board.pauses() == ()
