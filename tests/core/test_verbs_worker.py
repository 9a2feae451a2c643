"""The worker's verbs: claim, beat, verify, and the three ways to end a claim."""

from __future__ import annotations

import errno
import os

import pytest

import dibs
from tests.contract.test_verbs_worker import claimed, commits
from tests.core.tools import Place

pytestmark = pytest.mark.fast("dibs.files")


def test_a_claim_takes_the_task_from_the_queue(place: Place) -> None:
    claim = claimed(place)
    assert place.names() == [f"{claim.name}.claimed"]
    assert (claim.id, claim.fence, claim.task.state, claim.task.owner) == ("x", 1, "claimed", "me")
    assert claim.path == str(place.path / f"{claim.name}.claimed")
    assert claim.payload() == b"what to do"
    assert place.records() == [claim.name]


def test_a_task_with_two_names_is_never_claimed(place: Place) -> None:
    place.board.add("x", b"one")
    (place.path / "x.f7.available").write_bytes(b"two")
    assert place.board.claim() is None
    with pytest.raises(dibs.Exists, match="two names"):
        place.board.claim("x")
    assert (place.path / "x.available").read_bytes() == b"one"
    assert (place.path / "x.f7.available").read_bytes() == b"two"


def test_a_dotted_plain_task_is_claimed_under_its_escaped_name(place: Place) -> None:
    (place.path / "v1.2.available").write_bytes(b"p")
    claim = place.board.claim("v1.2", owner="me")
    assert claim is not None
    assert claim.name.startswith("v1=2E2.f1.me-")
    assert claim.payload() == b"p"


def test_the_largest_record_is_still_valid(place: Place) -> None:
    place.board.add("x")
    process = place.board.host.process(os.getpid())
    claim = place.board.claim(
        owner="\N{PILE OF POO}" * 256, metadata="\x01" * 1024, ttl=86_399.123456, process=process
    )
    assert claim is not None
    record = place.path / ".dibs/records" / claim.name
    assert record.stat().st_size <= 8192
    holder = place.board.holder(claim.task)
    assert holder is not None
    assert holder.flaw == ""


def test_a_beat_changes_only_the_times(place: Place) -> None:
    claim = claimed(place)
    record = place.path / ".dibs/records" / claim.name
    before, ino = record.read_bytes(), record.stat().st_ino
    place.world.advance(50)
    claim.beat()
    assert (record.read_bytes(), record.stat().st_ino) == (before, ino)
    age = place.board.snapshot().age(claim.task.name)
    assert age is not None
    assert age < 1


def test_a_beat_can_change_ttl_and_metadata(place: Place) -> None:
    claim = claimed(place)
    claim.beat(ttl=30, metadata="half way")
    holder = place.board.holder(claim.task)
    assert holder is not None
    assert (holder.ttl, holder.metadata, holder.owner) == (30, "half way", "me")
    assert place.records() == [claim.name]
    with pytest.raises(dibs.BadName):
        claim.beat(ttl=0)
    with pytest.raises(dibs.BadName):
        claim.beat(metadata="m" * 1025)


def test_the_next_beat_rewrites_a_record_that_was_removed_by_hand(place: Place) -> None:
    claim = claimed(place)
    (place.path / ".dibs/records" / claim.name).unlink()
    claim.beat()
    assert place.records() == [claim.name]


def test_a_claim_whose_task_was_removed_is_lost_without_a_new_holder(place: Place) -> None:
    claim = claimed(place)
    (place.path / claim.task.name).unlink()
    with pytest.raises(dibs.Lost) as caught:
        claim.beat()
    assert caught.value.now == ()


def test_done_moves_the_payload_and_removes_the_record(place: Place) -> None:
    claim = claimed(place)
    task = claim.done()
    assert (task.name, task.state) == (f"done/{claim.name}", "done")
    assert place.names() == [f"done/{claim.name}"]
    assert (place.path / task.name).read_bytes() == b"what to do"
    assert place.records() == []


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EIO])
def test_a_commit_whose_reply_was_lost_is_journalled_once(place: Place, code: int) -> None:
    claim = claimed(place)

    def lose(path: str) -> None:
        del place.port.after["rename"]
        raise OSError(code, "the reply was lost")

    place.port.after["rename"] = lose
    claim.done()
    claim.done()
    assert place.port.after == {}
    assert commits(place) == [claim.task.name]


def test_a_commit_of_a_claim_without_a_record_is_journalled_once(place: Place) -> None:
    claim = claimed(place)
    (place.path / ".dibs/records" / claim.name).unlink()
    claim.done()
    claim.done()
    assert commits(place) == [claim.task.name]


@pytest.mark.parametrize(
    "name", ["x.claimed", "x.available", "a\0b.available", "../x.claimed", "done/../x.claimed"]
)
def test_a_name_that_is_no_claim_cannot_be_attached(place: Place, name: str) -> None:
    (place.path / "x.claimed").touch()
    with pytest.raises(dibs.NotExact):
        place.board.attach(name)


def test_a_claim_without_its_record_is_requeued(place: Place) -> None:
    place.board.add("x", b"p")

    def full(path: str) -> None:
        if "records/" in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    place.port.before["create"] = full
    with pytest.raises(dibs.StorageError, match="free some space"):
        place.board.claim("x")
    (task,) = place.board.find("x")
    assert (task.state, task.fence) == ("available", 1)


def test_two_claims_of_one_task_have_one_winner(place: Place) -> None:
    place.board.add("x")
    other, _ = place.another()

    def rival(path: str) -> None:
        if path == "x.available":
            del place.port.before["rename"]
            assert other.claim("x", owner="rival") is not None

    place.port.before["rename"] = rival
    with pytest.raises(dibs.Held) as caught:
        place.board.claim("x", owner="me")
    assert caught.value.owner == "rival"


def test_a_beat_that_a_full_disk_gives_no_new_ttl_still_renews_the_lease(place: Place) -> None:
    place.board.add("x")
    made = place.board.claim("x", ttl=100)
    assert made is not None
    claim = place.another()[0].attach(made.name)
    place.world.advance(60)

    def full(path: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    claim._store.port.before["create"] = full  # type: ignore[attr-defined]
    start = place.world.boot
    with pytest.raises(dibs.StorageError, match=r"former ttl of 100 s.*free some"):
        claim.beat(ttl=200)
    assert place.world.boot == start, "the disk has refused it, so waiting changes nothing"
    place.world.advance(60)
    place.another()[0].attach(made.name).verify()
    claim._store.port.before.clear()  # type: ignore[attr-defined]
    claim.beat(ttl=200)
    assert claim.ttl == 200


def test_a_new_claim_whose_record_a_full_disk_refuses_is_renewed_at_once(place: Place) -> None:
    place.board.add("x")
    made = place.board.claim("x", ttl=100)
    assert made is not None
    claim = place.another()[0].attach(made.name)

    def full(path: str) -> None:
        if "aside/" not in path:  # an empty file still fits
            raise OSError(errno.ENOSPC, "No space left on device", path)

    claim._store.port.before["create"] = full  # type: ignore[attr-defined]
    start = place.world.boot
    claim.beat()
    assert place.world.boot == start, "it waits for no turn, least of all its own"
    with pytest.raises(dibs.StorageError, match=r"former ttl of 100 s.*free some"):
        claim.beat(ttl=200)
    assert place.world.boot == start
    claim._store.port.before.clear()  # type: ignore[attr-defined]
    claim.beat(ttl=200)
    assert claim.ttl == 200
