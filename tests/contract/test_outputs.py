"""Notes, results and kept output: what a holder says, and how long it stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dibs
from dibs.model.outputs import LOG_MIN, NOTE_CHARS, RESULT_BYTES
from tests.contract.place import Place

pytestmark = pytest.mark.fast("tests.contract")


def claimed(place: Place, ident: str = "x") -> dibs.Claim:
    """A claim on a new task."""
    place.board.add(ident, b"what to do")
    claim = place.board.claim(ident, owner="me")
    assert claim is not None
    return claim


def note_of(place: Place, claim: dibs.Claim) -> str:
    """The note as another process sees it."""
    holder = place.other().holder(claim.task)
    assert holder is not None
    return holder.note


def test_a_note_is_a_fact_of_the_holder_with_its_age(place: Place) -> None:
    claim = claimed(place)
    claim.note("epoch 3 of 10")
    place.advance(7)
    claim.beat()
    (entry,) = place.other().entries()
    assert entry.note == "epoch 3 of 10"
    assert entry.progress == pytest.approx(7, abs=1)
    assert entry.age == pytest.approx(0, abs=1)


def test_a_beat_can_carry_a_note(place: Place) -> None:
    claim = claimed(place)
    claim.beat(note="half of it")
    assert note_of(place, claim) == "half of it"
    claim.beat()
    assert note_of(place, claim) == "half of it"


def test_another_process_that_knows_the_name_can_note(place: Place) -> None:
    claim = claimed(place)
    place.other().attach(claim.name).note("from elsewhere")
    assert note_of(place, claim) == "from elsewhere"


def test_a_note_is_no_heartbeat(place: Place) -> None:
    claim = claimed(place)
    for _ in range(13):
        place.advance(10)
        claim.note("still here")
    reaped = place.other().reap()
    while reaped.retry is not None and not reaped.tasks:
        place.advance(reaped.retry)
        claim.note("still here")
        reaped = place.other().reap()
    assert [task.attempts for task in reaped.tasks] == [1]


def test_a_note_is_one_line_of_200_characters(place: Place) -> None:
    claim = claimed(place)
    claim.note("two\nlines\t and  blanks ")
    assert note_of(place, claim) == "two lines and blanks"
    claim.note("ä" * NOTE_CHARS)
    assert note_of(place, claim) == "ä" * NOTE_CHARS
    for wrong in ("x" * (NOTE_CHARS + 1), 7, "\ud800"):
        with pytest.raises(dibs.BadName, match="note"):
            claim.note(wrong)  # type: ignore[arg-type]
    claim.note("")
    assert note_of(place, claim) == ""


@pytest.mark.parametrize("end", ["done", "fail", "release", "force-release", "park"])
def test_the_last_note_stays_in_the_log_when_the_claim_ends(place: Place, end: str) -> None:
    claim = claimed(place)
    claim.note("first")
    claim.note("last words")
    if end == "force-release":
        place.board.force_release(claim.name, "why")
    elif end == "park":
        place.board.park(claim.name, "why")
    else:
        ends: dict[str, Callable[[], dibs.Task]] = {
            "done": claim.done,
            "fail": claim.fail,
            "release": claim.release,
        }
        ends[end]()
    event = place.other().log.of("x")[-1]
    assert (event.verb, event.note) == (end, "last words")
    assert all(entry.note == "" for entry in place.other().entries())


def test_the_note_of_an_expired_claim_is_in_the_line_of_its_reaper(place: Place) -> None:
    claimed(place).note("stuck at 99 %")
    reaped = place.other().reap()
    while not reaped.tasks:
        place.advance(reaped.retry or 130)
        reaped = place.other().reap()
    assert place.board.log.of("x")[-1].note == "stuck at 99 %"


def test_the_next_claim_begins_without_a_note(place: Place) -> None:
    first = claimed(place)
    first.note("old")
    first.release()
    again = place.board.claim("x")
    assert again is not None
    assert note_of(place, again) == ""
    again.note("older")
    resumed = place.board.resume("x", name=again.name)
    assert note_of(place, resumed) == ""


def test_noting_a_lost_claim_raises_lost(place: Place) -> None:
    claim = claimed(place)
    place.board.force_release(claim.name, "why")
    with pytest.raises(dibs.Lost):
        claim.note("too late")
    assert place.board.check() == []


def test_a_lock_can_have_a_note(place: Place) -> None:
    lock = place.board.acquire("door", owner="me")
    lock.note("deploying 1.4")
    assert note_of(place, lock) == "deploying 1.4"
    lock.release()
    assert place.board.log.of("door")[-1].note == "deploying 1.4"


def test_a_result_is_there_with_the_commit(place: Place) -> None:
    claim = claimed(place)
    done = claim.done(b"\x00 42\n")
    assert place.other().result(done) == b"\x00 42\n"
    assert claim.done(b"\x00 42\n") == done


def test_a_task_without_a_result_has_none(place: Place) -> None:
    assert place.board.result(claimed(place).done()) is None


def test_an_empty_result_is_a_result(place: Place) -> None:
    assert place.board.result(claimed(place).done(b"")) == b""


@pytest.mark.parametrize("first", [b"1", b"", None])
def test_the_result_of_a_commit_stays(place: Place, first: bytes | None) -> None:
    claim = claimed(place)
    done = claim.done(first)
    for again in (claim, place.other().attach(claim.name)):
        with pytest.raises(dibs.Changed, match=r"result.*`dibs .*show x`") as refused:
            again.done(b"2")
        assert refused.value.now == (done,)
        assert again.done(first) == done
        assert again.done() == done
    assert place.other().result(done) == first


def test_a_result_that_is_too_long_commits_nothing(place: Place) -> None:
    claim = claimed(place)
    with pytest.raises(dibs.BadName, match="65,536 bytes, got 65,537"):
        claim.done(b"x" * (RESULT_BYTES + 1))
    with pytest.raises(dibs.BadName, match="bytes"):
        claim.done("text")  # type: ignore[arg-type]
    claim.verify()
    claim.done(b"x" * RESULT_BYTES)


def test_a_lost_claim_leaves_no_result(place: Place) -> None:
    claim = claimed(place)
    task = place.board.force_release(claim.name, "why")
    with pytest.raises(dibs.Lost):
        claim.done(b"42")
    assert place.board.result(claim.task) is None
    assert place.names() == [task.name]


def test_a_result_survives_a_requeue_that_is_undone(place: Place) -> None:
    done = claimed(place).done(b"42")
    place.board.requeue(done.name)
    assert place.board.undo("x") == done
    assert place.board.result(done) == b"42"


def kept(place: Place, claim: dibs.Claim, data: bytes, piece: int, limit: int) -> dibs.Output:
    """What is kept of an output that comes in pieces."""
    keeper = claim.keep_output(limit)
    for at in range(0, len(data), piece):
        keeper.keep(data[at : at + piece], at)
    found = place.other().output(claim.name)
    assert found is not None
    return found


@pytest.mark.parametrize("piece", [1, 100, 1023, 5000, 100_000])
@pytest.mark.parametrize("length", [0, 10, 2048, 2049, 4096, 20_000])
def test_output_keeps_its_beginning_and_its_end(place: Place, piece: int, length: int) -> None:
    claim = claimed(place)
    data = bytes(n * 7 % 251 for n in range(length))
    if not length:
        claim.keep_output(LOG_MIN)
        assert place.board.output(claim.name) is None
        return
    if piece == 1 and length > 5000:
        length, data = 5000, data[:5000]
    found = kept(place, claim, data, piece, LOG_MIN)
    assert found.end == length
    assert all(data[at : at + len(part)] == part for at, part in found.parts)
    assert sum(len(part) for _, part in found.parts) <= LOG_MIN
    assert found.parts[0][0] == 0
    assert len(found.parts[0][1]) == min(length, LOG_MIN // 2)
    assert data.endswith(found.parts[-1][1])
    if length <= LOG_MIN * 3 // 4:
        assert b"".join(part for _, part in found.parts) == data
    tail = sum(len(part) for _, part in found.parts[1:])
    assert tail >= min(max(0, length - LOG_MIN // 2), LOG_MIN // 4)


def test_a_gap_in_the_output_is_reported_to_its_readers(place: Place) -> None:
    claim = claimed(place)
    keeper = claim.keep_output(LOG_MIN)
    keeper.keep(b"begin", 0)
    keeper.keep(b"end", 1000)
    found = place.board.output(claim.name)
    assert found is not None
    assert found.gaps() == ((0, b"begin"), (995, b"end"))
    assert found.end == 1003
    later = place.board.output(claim.name, 1001)
    assert later is not None
    assert later.parts == ((1001, b"nd"),)
    at_end = place.board.output(claim.name, 1003)
    assert at_end is not None
    assert (at_end.parts, at_end.end) == ((), 1003)


def test_the_output_of_each_attempt_is_kept_under_its_number(place: Place) -> None:
    claim = claimed(place)
    kept(place, claim, b"first", 9, LOG_MIN)
    claim.fail("no")
    again = place.board.claim("x")
    assert again is not None
    kept(place, again, b"second", 9, LOG_MIN)
    assert [each.attempt for each in place.board.outputs("x")] == [1, 2]
    assert [each.claim for each in place.board.outputs("x")] == [claim.name, again.name]
    assert place.board.outputs("y") == []


def test_a_purge_removes_result_and_output_of_all_attempts(place: Place) -> None:
    claim = claimed(place)
    kept(place, claim, b"z" * 20_000, 999, LOG_MIN)
    claim.fail("no")
    again = place.board.claim("x")
    assert again is not None
    kept(place, again, b"second", 9, LOG_MIN)
    done = again.done(b"42")
    place.board.reap()
    assert len(place.board.outputs("x")) == 2
    assert place.board.purge(0) == 1
    assert place.board.outputs("x") == []
    assert place.board.result(done) is None


def test_output_of_earlier_attempts_is_removed_by_age(place: Place) -> None:
    claim = claimed(place)
    kept(place, claim, b"first", 9, LOG_MIN)
    claim.fail("no")
    again = place.board.claim("x")
    assert again is not None
    kept(place, again, b"second", 9, LOG_MIN)
    again.done(b"42")
    place.advance(place.board.settings.keep_logs + 60)
    place.board.reap()
    assert [each.attempt for each in place.board.outputs("x")] == [2]


@pytest.mark.parametrize("limit", [-1, 1, LOG_MIN - 1, 1 << 31, 4096.0, "1M", True])
def test_a_limit_of_output_is_a_number_of_bytes(place: Place, limit: object) -> None:
    with pytest.raises(dibs.BadName, match="bytes"):
        claimed(place).keep_output(limit)  # type: ignore[arg-type]
