"""Section 5 of the protocol: each incomplete state, how it is found, and its repair."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import dibs
from dibs.model.errors import Changed, Exists
from tests.core.tools import Killed, Place

HOUR = 3600
NONCE = "0123456789"


def dying(place: Place, verb: str, begin: str, act: Callable[[dibs.Board], object]) -> None:
    """Let another process die just before a call on a path that begins like this."""
    board, port = place.another()

    def die(path: str) -> None:
        if path.startswith(begin):
            raise Killed

    port.before[verb] = die
    with pytest.raises(Killed):
        act(board)


def kinds(place: Place) -> list[str]:
    return sorted(finding.kind for finding in place.board.check())


def names(place: Place, folder: str) -> list[str]:
    return sorted(path.name for path in (place.path / folder).iterdir())


def assert_repaired(place: Place) -> None:
    """Repair, and assert that nothing is left and that a second repair changes nothing."""
    assert place.board.repair() == []
    before = sorted(str(path) for path in place.path.rglob("*"))
    assert place.another()[0].repair() == []
    assert sorted(str(path) for path in place.path.rglob("*")) == before
    assert kinds(place) == []


def interrupted(place: Place, ident: str = "x", payload: bytes = b"p", **more: Any) -> None:
    """An adder dies after it began the life of an id and before it published the payload."""
    dying(place, "rename", ".dibs/new/", lambda board: board.add(ident, payload, **more))
    assert place.names() == []


def test_file_in_new_whose_adder_began_the_life_is_reported_and_published(place: Place) -> None:
    interrupted(place, priority=7)
    (finding,) = place.board.check()
    assert (finding.kind, finding.fault) == ("draft", False)
    assert finding.age is not None
    assert finding.age < 60
    place.world.advance(90)
    (finding,) = place.board.check()
    assert finding.age is not None
    assert 60 < finding.age < 120
    assert "not on the board yet" in finding.text
    place.world.advance(HOUR + 1)
    (finding,) = place.board.check()
    assert (finding.kind, finding.fault) == ("draft", True)
    assert_repaired(place)
    assert place.names() == ["x.f0p7.available"]
    assert (place.path / "x.f0p7.available").read_bytes() == b"p"


def test_interrupted_add_is_published_at_once_by_a_repair(place: Place) -> None:
    interrupted(place)
    assert_repaired(place)
    assert place.names() == ["x.available"]


def test_second_add_publishes_the_payload_of_an_interrupted_one_and_says_so(place: Place) -> None:
    interrupted(place)
    with pytest.raises(Exists, match=r"x\.available.*; its payload is that of an earlier add"):
        place.board.add("x", b"the same again")
    assert place.names() == ["x.available"]
    assert (place.path / "x.available").read_bytes() == b"p"
    assert names(place, ".dibs/new") == []
    assert [event.verb for event in place.board.log.of("x")] == ["add"]


def test_interrupted_add_is_published_by_a_worker_that_finds_nothing(place: Place) -> None:
    interrupted(place)
    claim = place.board.claim()
    assert claim is not None
    assert claim.task.id == "x"


def test_interrupted_add_is_published_by_a_worker_that_wants_that_task(place: Place) -> None:
    interrupted(place)
    claim = place.board.claim("x")
    assert claim is not None


def test_interrupted_add_is_published_by_a_reap(place: Place) -> None:
    interrupted(place)
    place.board.reap()
    assert place.names() == ["x.available"]


def test_interrupted_add_is_named_as_why_the_id_is_missing_or_not_free(place: Place) -> None:
    interrupted(place)
    assert "is not on the board yet" in place.board.why_missing("x")
    assert "`dibs reap` publishes .dibs/new/x.task." in place.board.why_missing("x")
    with pytest.raises(Changed, match="`dibs reap` publishes"):
        place.board.forget("x")
    assert "is not on this board" in place.board.why_missing("y")


def test_adder_whose_payload_another_process_published_reports_success(place: Place) -> None:
    board, port = place.another()

    def repair(path: str) -> None:
        if path.startswith(".dibs/new/x."):
            assert place.board.repair() == []

    port.before["rename"] = repair
    assert board.add("x", b"p").name == "x.available"
    assert [event.verb for event in board.log.of("x")] == ["add"]


def test_interrupted_add_is_not_published_beside_a_name_of_the_id(place: Place) -> None:
    interrupted(place)
    (place.path / "x.f1.ann-0123456789.claimed").write_bytes(b"p")
    place.board.reap()
    assert place.names() == ["x.f1.ann-0123456789.claimed"]
    (left,) = [f for f in place.board.repair() if f.kind == "draft"]
    assert "was not published: 'x' exists" in left.text


def test_file_in_new_of_a_lock_is_published_as_a_lock(place: Place) -> None:
    dying(place, "rename", ".dibs/new/", lambda board: board.acquire("door"))
    place.board.repair()
    assert place.names() == [".dibs/free/42d/door.f0"]


def test_file_in_new_whose_id_another_producer_added_is_removed(place: Place) -> None:
    dying(place, "link", ".dibs/known/", lambda board: board.add("x", b"never published"))
    place.board.add("x", b"p")
    place.world.advance(HOUR + 1)
    place.board.repair()
    assert names(place, ".dibs/new") == []
    assert place.names() == ["x.available"]
    assert (place.path / "x.available").read_bytes() == b"p"


def test_file_in_new_of_a_slow_adder_is_left_alone(place: Place) -> None:
    dying(place, "link", ".dibs/known/", lambda board: board.add("x", b"p"))
    place.world.advance(HOUR - 60)
    place.board.repair()
    assert any(name.startswith("x.task.") for name in names(place, ".dibs/new"))
    assert place.names() == []


def test_file_in_new_is_not_aged_by_a_step_of_the_clock(place: Place) -> None:
    dying(place, "link", ".dibs/known/", lambda board: board.add("x", b"p"))
    place.world.step(2 * HOUR)
    place.board.repair()
    assert any(name.startswith("x.task.") for name in names(place, ".dibs/new"))


def test_record_whose_exact_claimed_name_is_gone_is_removed(place: Place) -> None:
    for ident in ("a", "b"):
        place.board.add(ident)
    alive = place.board.claim("b")
    assert alive is not None
    dying(place, "unlink", ".dibs/records/", lambda board: board.attach(claimed(board, "a")).done())
    assert len(place.records()) == 2
    assert kinds(place) == ["record"]
    assert_repaired(place)
    assert place.records() == [alive.name]


@pytest.mark.parametrize("name", [".nfs00000000012c4bd100000004", ".fuse_hidden000000d400000001"])
def test_record_that_a_file_system_renamed_because_it_was_open_is_removed(
    place: Place, name: str
) -> None:
    place.board.check()
    (place.path / ".dibs/records" / name).write_text("{}")
    assert kinds(place) == ["record"]
    assert_repaired(place)
    assert place.records() == []


def claimed(board: dibs.Board, ident: str) -> str:
    claim = board.claim(ident)
    assert claim is not None
    return claim.name


def test_claimed_name_without_a_record_is_reaped_by_the_boards_ttl(place: Place) -> None:
    place.board.add("x", b"p")
    place.board.reap()
    dying(place, "create", ".dibs/records/", lambda board: board.claim("x", ttl=1000))
    assert place.records() == []
    place.world.advance(100)
    assert kinds(place) == ["record"]
    place.world.advance(21)
    assert kinds(place) == ["stale"]
    assert_repaired(place)
    assert place.names() == ["x.f1a1.available"]


def test_plain_claim_without_a_lock_is_reaped_by_the_plain_ttl(place: Place) -> None:
    (place.path / "x.claimed").write_bytes(b"p")
    place.board.reap()
    place.world.advance(599)
    assert kinds(place) == []
    place.world.advance(2)
    assert kinds(place) == ["stale"]
    assert_repaired(place)
    assert place.names() == ["x.available"]
    assert (place.path / "x.available").read_bytes() == b"p"


@pytest.mark.parametrize("lock", ["", "1700000000 web-3\n", "torn"])
def test_plain_claim_with_a_stale_lock_is_requeued_under_its_own_name(
    place: Place, lock: str
) -> None:
    (place.path / "v1.2.claimed-by-web-3").write_bytes(b"p")
    (place.path / "v1.2.lock").write_text(lock)
    place.board.reap()
    place.world.advance(601)
    assert_repaired(place)
    assert place.names() == ["v1.2.available"]
    assert names(place, ".dibs/aside") == names(place, ".dibs/records") == []


def test_plain_claim_whose_lock_is_fresh_is_alive(place: Place) -> None:
    (place.path / "x.claimed").touch()
    place.board.reap()
    place.world.advance(601)
    (place.path / "x.lock").write_text("")
    assert kinds(place) == []
    assert place.board.reap().tasks == ()


def test_plain_claim_requeued_too_often_is_parked(place: Place) -> None:
    (place.path / "x.available").write_bytes(b"p")
    for _ in range(5):
        (place.path / "x.available").rename(place.path / "x.claimed")
        place.world.step(0)
        place.board.reap()
        place.world.advance(601)
        place.board.reap()
    (task,) = place.board.find("x")
    assert task.state == "failed"
    assert (place.path / task.name).read_bytes() == b"p"
    assert "often" in place.board.log.of("x")[-1].reason + place.board.log.of("x")[-2].reason


def test_lock_without_a_plain_claim_is_removed_past_the_ttl(place: Place) -> None:
    (place.path / "x.lock").write_text("1700000000 web-3\n")
    place.board.reap()
    place.world.advance(599)
    assert kinds(place) == []
    place.world.advance(2)
    assert kinds(place) == ["lock"]
    assert_repaired(place)
    assert place.names() == []


def test_lock_files_of_other_programs_are_never_touched(place: Place) -> None:
    (place.path / "uv.lock").write_text("version = 1\n")
    (place.path / "empty.lock").touch()
    (place.path / "daemon.lock").write_text("41943\n")
    (place.path / "long.lock").write_text("1700000000 web-3\n" + "more\n" * 200)
    (place.path / "link.lock").symlink_to("uv.lock")
    (place.path / "folder.lock").mkdir()
    (place.path / "full.lock").mkdir()
    (place.path / "full.lock/inside").write_text("kept")
    os.mkfifo(place.path / "fifo.lock")
    place.board.add("uv")  # even where the stem is an id of this board
    before = place.names()
    for _ in range(3):
        place.board.repair()
        place.world.advance(601)
    assert kinds(place) == []
    assert place.names() == before
    assert (place.path / "full.lock/inside").read_text() == "kept"
    assert names(place, ".dibs/aside") == []


@pytest.mark.parametrize("payload", ["IMPORTANT", "1700000000 web.lock\n"])
def test_a_claim_by_a_host_whose_name_ends_in_lock_is_kept_and_reported(
    place: Place, payload: str
) -> None:
    (place.path / "h8.claimed-by-web.lock").write_text(payload)
    (place.path / "h8.lock").write_text("1700000000 web.lock\n")
    for _ in range(3):
        place.board.repair()
        place.world.advance(601)
    assert kinds(place) == ["stranger"]
    assert place.names() == ["h8.claimed-by-web.lock", "h8.lock"]
    assert (place.path / "h8.claimed-by-web.lock").read_text() == payload


@pytest.mark.parametrize("word", ["lock", "available", "held"])
def test_an_id_that_may_be_claimed_by_a_host_named_like_a_state_is_not_free(
    place: Place, word: str
) -> None:
    place.board.add("x", b"payload")
    os.rename(place.path / "x.available", place.path / f"x.claimed-by-web.{word}")
    (finding,) = place.board.check()
    assert (finding.kind, finding.name) == ("stranger", f"x.claimed-by-web.{word}")
    assert f"'x' by 'web.{word}'" in finding.text
    assert "x.claimed or x.available" in finding.text
    assert finding.repair is None
    with pytest.raises(Changed, match="still on the board"):
        place.board.forget("x")
    os.rename(place.path / f"x.claimed-by-web.{word}", place.path / "x.claimed")
    assert [task.state for task in place.board.find("x")] == ["claimed"]


def test_a_file_that_replaces_a_lock_during_its_removal_is_restored(place: Place) -> None:
    (place.path / "x.lock").write_text("1700000000 web-3\n")
    place.board.reap()
    place.world.advance(601)

    def swap(path: str) -> None:
        if path == "x.lock":
            (place.path / "x.lock").unlink()
            (place.path / "x.lock").write_text("version = 1\n")

    place.port.before["rename"] = swap
    place.board.repair()
    assert (place.path / "x.lock").read_text() == "version = 1\n"


def test_a_file_that_was_moved_aside_and_is_no_heartbeat_stays_there(place: Place) -> None:
    place.board.claim()
    (place.path / ".dibs/aside" / NONCE).write_text("version = 1\n")
    assert [f.kind for f in place.board.repair()] == ["stranger"]
    assert names(place, ".dibs/aside") == [NONCE]


def test_lock_that_beats_while_it_is_removed_stays(place: Place) -> None:
    (place.path / "x.lock").write_text("1700000000 web-3\n")
    place.board.reap()
    place.world.advance(601)

    def beat(path: str) -> None:
        if path == "x.lock":
            (place.path / "x.lock").write_text("1700000001 web-3\n")

    place.port.before["rename"] = beat
    place.board.repair()
    assert place.names() == ["x.lock"]


def test_lock_that_its_owner_removes_meanwhile_is_no_error(place: Place) -> None:
    (place.path / "x.lock").touch()
    place.board.reap()
    place.world.advance(601)
    findings = place.board.check()
    (place.path / "x.lock").unlink()
    for finding in findings:
        assert finding.repair is not None
        finding.repair()


@pytest.mark.parametrize("step", ["lock", "back", "record"])
def test_takeover_of_a_plain_claim_is_finished_to_the_bare_name(place: Place, step: str) -> None:
    (place.path / "x.claimed").write_bytes(b"p")
    (place.path / "x.lock").write_text("1700000000 web-3\n")
    place.board.reap()
    place.world.advance(601)
    verb, begin = {
        "lock": ("rename", "x.lock"),
        "back": ("rename", "x.f0.dibs-"),
        "record": ("unlink", ".dibs/records/"),
    }[step]
    dying(place, verb, begin, lambda board: board.reap())
    if step == "record":
        assert place.names() == ["x.available"]
    else:
        place.board.repair()  # the lock of a takeover is not a lock without a claim
        assert len(place.names()) == (2 if step == "lock" else 1)
        place.world.advance(121)
        assert "take" in kinds(place)
    place.board.repair()
    place.board.repair()
    assert place.names() == ["x.available"]
    assert (place.path / "x.available").read_bytes() == b"p"
    assert names(place, ".dibs/aside") == names(place, ".dibs/records") == []


def test_takeover_without_its_record_needs_a_person(place: Place) -> None:
    (place.path / f"x.f0.dibs-{NONCE}.claimed").write_bytes(b"p")
    place.board.reap()
    place.world.advance(121)
    place.board.repair()
    (task,) = place.board.find("x")
    assert task.state == "failed"
    assert (place.path / task.name).read_bytes() == b"p"


def test_known_without_gone_and_no_name_is_shown_as_gone_and_forget_frees_it(
    place: Place,
) -> None:
    place.board.add("x")
    (place.path / "x.available").unlink()
    (finding,) = place.board.check()
    assert (finding.kind, finding.name, finding.repair) == ("gone", ".dibs/known", None)
    assert (finding.ids, finding.fault) == (("x",), False)
    assert "forget" in finding.text
    assert [left.kind for left in place.board.repair()] == ["gone"]
    place.board.forget("x")
    assert kinds(place) == []
    place.board.add("x")
    assert kinds(place) == []


def test_known_of_a_purged_task_is_not_reported(place: Place) -> None:
    place.board.add("x")
    place.board.attach(claimed(place.board, "x")).done()
    place.board.purge(0)
    assert kinds(place) == []


def test_two_names_with_one_id_are_reported_never_claimed_and_never_deleted(
    place: Place,
) -> None:
    place.board.add("v1.2", b"one")
    (place.path / "v1.2.available").write_bytes(b"two")
    (finding,) = place.board.check()
    assert (finding.kind, finding.repair) == ("double", None)
    assert "v1=2E2.available" in finding.text
    assert [left.kind for left in place.board.repair()] == ["double"]
    assert place.board.claim() is None
    assert place.names() == ["v1.2.available", "v1=2E2.available"]


def test_a_double_that_is_claimed_is_still_reported(place: Place) -> None:
    place.board.add("x")
    claimed(place.board, "x")
    (place.path / "x.available").touch()
    assert kinds(place) == ["double"]
    assert place.board.claim() is None


def test_torn_last_line_in_a_journal_is_ignored(place: Place) -> None:
    place.board.add("x")
    (file,) = (place.path / ".dibs/journal").iterdir()
    with open(file, "ab") as tail:
        tail.write(b'{"at": 1, "verb"')
    (finding,) = place.board.check()
    assert (finding.kind, finding.name) == ("journal", f".dibs/journal/{file.name}")
    assert [event.verb for event in place.board.log.of("x")] == ["add"]


def test_an_unknown_file_is_reported_and_left_alone(place: Place) -> None:
    strange = ["notes.txt", "x.Available", "x.held", "done/notes.txt", "failed/x.available"]
    place.board.check()
    for name in strange:
        (place.path / name).write_text("mine")
    assert sorted(finding.name for finding in place.board.check()) == sorted(strange)
    assert [finding.kind for finding in place.board.repair()] == ["stranger"] * 5
    assert place.names() == sorted(strange)


def test_a_beat_from_the_future_is_reported_and_reaped_only_by_two_looks(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x", ttl=100)
    assert claim is not None
    place.world.step(-HOUR)
    assert "future" in kinds(place)
    place.world.advance(100)
    assert place.board.reap().tasks == ()
    place.world.advance(10)
    assert [task.id for task in place.board.reap().tasks] == ["x"]


def test_many_janitors_at_once_repair_each_state_once(place: Place) -> None:
    for ident in "abc":
        place.board.add(ident)
        claimed(place.board, ident)
    (place.path / "p.claimed").touch()
    place.board.reap()
    place.world.advance(700)
    findings = [finding for _ in range(3) for finding in place.another()[0].check()]
    for finding in findings:
        assert finding.repair is not None
        finding.repair()
    assert place.names() == [f"{x}.f1a1.available" for x in "abc"] + ["p.available"]
    assert kinds(place) == []


@pytest.mark.parametrize("lock", [False, True])
def test_a_live_claim_without_its_record_is_reported(place: Place, lock: bool) -> None:
    place.board.add("x")
    claim = place.board.acquire("door") if lock else place.board.claim("x")
    assert claim is not None
    (place.path / ".dibs/records" / claim.name).unlink()
    assert place.board.check() == []  # it may still write its record
    place.world.advance(15)
    (finding,) = place.board.check()
    assert (finding.kind, finding.name, finding.fault) == ("record", claim.task.name, False)
    assert finding.repair is None
    claim.beat()
    assert place.board.check() == []


def test_a_claim_that_ends_during_a_check_is_not_reported(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    place.world.advance(15)
    record = f".dibs/records/{claim.name}"
    looker, port = place.another()

    def end(path: str) -> None:
        if path == record and (place.path / record).exists():
            claim.done()

    port.before["read"] = end
    assert looker.check() == []
    assert [task.state for task in place.board.find("x")] == ["done"]


# What cannot be removed


LEFT = {
    ".dibs/records/x.f1.me-0123456789": "record",
    f".dibs/records/.nfs{'0' * 24}": "record",
    f".dibs/new/{NONCE}": "draft",
    f".dibs/witness/host.{NONCE}": "draft",
    f".dibs/probe.{NONCE}": "draft",
    "x.lock": "lock",
}


@pytest.mark.parametrize(("path", "kind"), LEFT.items())
def test_what_the_disk_does_not_remove_is_not_reported_as_repaired(
    place: Place, path: str, kind: str
) -> None:
    content = f"{int(place.board.snapshot().now.fs / 1e9)} me\n" if kind == "lock" else ""
    place.board.add("other")
    (place.path / path).write_text(content)
    place.world.advance(HOUR + 1)
    place.board.check()
    place.world.advance(HOUR + 1)
    assert kinds(place) == [kind]

    def refuse(refused: str) -> None:
        if refused.startswith((path, ".dibs/aside")):
            raise PermissionError(errno.EACCES, "Permission denied", refused)

    place.port.before["unlink"] = refuse
    repaired: list[dibs.Finding] = []
    (left,) = place.board.repair(repaired.append)
    assert (repaired, left.kind) == ([], kind)
    assert "check the rights of this user" in left.text


def test_a_note_of_lost_ids_that_cannot_be_removed_is_not_reported_as_repaired(
    place: Place,
) -> None:
    place.board.add("x")
    (place.path / ".dibs/known/lost").touch()

    def refuse(refused: str) -> None:
        if refused == ".dibs/known/lost":
            raise PermissionError(errno.EACCES, "Permission denied", refused)

    place.port.before["unlink"] = refuse
    repaired: list[dibs.Finding] = []
    (left,) = place.board.repair(repaired.append)
    assert (repaired, left.kind) == ([], "known")
    with pytest.raises(dibs.DibsError):
        place.board.add("y")


def test_a_trial_that_cannot_be_removed_is_not_reported_as_repaired(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.board.add("x")
    trial = place.path / f".dibs/trial.{NONCE}"
    trial.mkdir()
    os.utime(trial, (0, 0))

    def refuse(path: str, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("dibs.files.probing.trial.shutil.rmtree", refuse)
    repaired: list[dibs.Finding] = []
    (left,) = place.board.repair(repaired.append)
    assert (repaired, left.kind) == ([], "trial")


@pytest.mark.parametrize("verb", ["names", "stat", "read"])
def test_an_error_of_the_disk_at_any_look_of_a_check_is_one_of_dibs(
    place: Place, verb: str
) -> None:
    place.board.add("a")
    place.board.add("b")
    place.board.claim("a", owner="w")
    for number in range(60):
        board, port = place.another()
        left = [number]

        def fail(path: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.EIO, "Input/output error", path)

        port.before[verb] = fail
        with suppress(dibs.DibsError):
            board.check()
    assert left[0] >= 0, "there are more calls than were tried"
