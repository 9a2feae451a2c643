"""The lives of an id: add, purge, forget, and no fence granted twice."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

import pytest

import dibs
from tests.contract.test_verbs_lives import run
from tests.core.tools import Place


def test_adding_publishes_the_complete_payload(place: Place) -> None:
    task = place.board.add("v1.2", b"what to do", priority=7)
    assert task.name == "v1=2E2.f0p7.available"
    assert place.board.payload(task) == b"what to do"
    assert place.names() == [task.name]
    assert list((place.path / ".dibs/new").iterdir()) == []


@pytest.mark.parametrize("ident", ["a/b", "../x", "a\0b", "a\nb", "..", "\udcff", "available", "é"])
def test_any_text_is_an_id(place: Place, ident: str) -> None:
    place.board.add(ident, b"p")
    claim = place.board.claim(ident)
    assert claim is not None
    assert claim.id == ident
    claim.done()
    assert [task.state for task in place.board.find(ident)] == ["done"]
    assert [event.verb for event in place.board.log.of(ident)] == ["add", "claim", "done"]
    assert sorted(p.name for p in place.path.parent.iterdir()) == [".world", "board"]


@pytest.mark.parametrize("state", ["available", "claimed", "done", "failed"])
def test_adding_an_id_twice_says_where_it_is(place: Place, state: str) -> None:
    task = place.board.add("x", b"first")
    if state == "failed":
        place.board.park(task.name, "no")
    elif state != "available":
        claim = place.board.claim("x")
        assert claim is not None
        if state == "done":
            claim.done()
    before = place.names()
    with pytest.raises(dibs.Exists, match=state):
        place.board.add("x", b"second")
    assert place.names() == before
    assert list((place.path / ".dibs/new").iterdir()) == []


@pytest.mark.parametrize("verb", ["claim", "done"])
def test_an_id_that_a_shell_added_and_dibs_claimed_is_not_added_again(
    place: Place, verb: str
) -> None:
    (place.path / "x.available").write_bytes(b"by a shell")
    claim = place.board.claim("x")
    assert claim is not None
    if verb == "done":
        claim.done()
    with pytest.raises(dibs.Exists):
        place.board.add("x", b"second")
    assert len(place.board.find("x")) == 1


def test_a_dotted_id_that_a_shell_added_is_not_added_again(place: Place) -> None:
    (place.path / "v1.2.available").write_bytes(b"by a shell")
    with pytest.raises(dibs.Exists):
        place.board.add("v1.2", b"second")
    assert place.names() == ["v1.2.available"]


def test_adding_never_replaces_a_shells_task(place: Place) -> None:
    (place.path / "x.available").write_bytes(b"by a shell")
    with pytest.raises(dibs.Exists):
        place.board.add("x", b"second")
    assert (place.path / "x.available").read_bytes() == b"by a shell"
    assert place.names() == ["x.available"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("word", ["available", "claimed"])
def test_a_refused_add_leaves_nothing_that_is_published_later(
    place: Place, word: str, late: bool
) -> None:
    """The same if the shell came after the first look and has finished an hour later."""
    theirs = place.path / f"x.{word}"
    if late:
        place.port.before["link"] = lambda path: theirs.touch()
    else:
        theirs.touch()
    with pytest.raises(dibs.Exists, match=f"x.{word}"):
        place.board.add("x", b"refused")
    assert list((place.path / ".dibs/new").iterdir()) == []
    theirs.unlink()
    place.world.advance(4000)
    place.board.repair()
    assert place.names() == []
    if late:
        place.port.before.clear()
        with pytest.raises(dibs.Exists, match="forget"):
            place.board.add("x", b"again")
        place.board.forget("x")
    assert place.board.add("x", b"again").state == "available"


def test_an_add_whose_refusal_could_not_be_completed_is_uncertain(place: Place) -> None:
    def fail(path: str) -> None:
        if path.startswith(".dibs/new/x."):
            raise OSError(errno.EIO, "it broke", path)

    place.port.before["link"] = lambda path: (place.path / "x.available").touch()
    place.port.before["rename"] = fail
    with pytest.raises(dibs.Uncertain):
        place.board.add("x", b"mine")


def test_a_purge_continues_after_a_file_that_it_cannot_remove(place: Place) -> None:
    for ident in ("a", "b", "c"):
        place.board.add(ident)
        run(place, ident)
    done = place.path / "done"
    stuck = next(p for p in done.iterdir() if p.name.startswith("a."))
    stuck.unlink()
    stuck.mkdir()
    with suppress(dibs.StorageError):
        place.board.purge(0)
    assert [p.name for p in done.iterdir()] == [stuck.name]


@pytest.mark.parametrize("journal", [True, False])
def test_a_vanished_id_is_forgotten_and_continues_above_its_old_fences(
    place: Place, journal: bool
) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    (place.path / claim.task.name).unlink()
    if not journal:
        for file in (place.path / ".dibs/journal").iterdir():
            file.unlink()
    place.board.forget("x")
    assert place.board.add("x").fence > claim.fence
    with pytest.raises(dibs.Lost):
        claim.done()


def test_an_id_that_is_being_added_cannot_be_forgotten(place: Place) -> None:
    def other(path: str) -> None:
        if path.startswith(".dibs/new/"):
            del place.port.before["rename"]
            with pytest.raises(dibs.Changed, match="not on the board yet"):
                place.another()[0].forget("x")

    place.port.before["rename"] = other
    place.board.add("x", b"p")
    assert place.names() == ["x.available"]


def test_an_adder_whose_reply_was_lost_finds_its_own_task(place: Place) -> None:
    def lost(path: str) -> None:
        raise OSError(errno.EIO, "it broke", path)

    place.port.after["link"] = lost
    place.port.after["rename"] = lost
    assert place.board.add("x", b"p").name == "x.available"
    assert place.names() == ["x.available"]


def test_two_adders_of_one_id_have_one_winner(place: Place) -> None:
    def rival(path: str) -> None:
        if "known/" in path:
            del place.port.before["link"]
            place.another()[0].add("x", b"rival")

    place.port.before["link"] = rival
    with pytest.raises(dibs.Exists):
        place.board.add("x", b"mine")
    assert place.names() == ["x.available"]
    assert (place.path / "x.available").read_bytes() == b"rival"
    assert list((place.path / ".dibs/new").iterdir()) == []


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_a_file_system_without_links_can_add(place: Place, code: int) -> None:
    def refuse(path: str) -> None:
        raise OSError(code, "no links", path)

    place.port.before["link"] = refuse
    place.board.add("x", b"p")
    with pytest.raises(dibs.Exists):
        place.board.add("x", b"again")


@pytest.mark.parametrize("number", [10**18 - 1, 10**18 - 2])
def test_a_fence_that_no_name_can_hold_is_never_granted(place: Place, number: int) -> None:
    (place.path / f"x.f{number}.available").write_bytes(b"p")
    try:
        claim = place.board.claim("x", owner="me")
    except dibs.DibsError:
        claim = None
    (task,) = place.board.find("x")
    assert (place.path / task.name).read_bytes() == b"p"
    if claim is not None:
        assert (task.name, task.fence) == (claim.task.name, number + 1)


def test_an_attempt_that_no_name_can_hold_is_never_counted(place: Place) -> None:
    (place.path / "x.f0a999999999.available").write_bytes(b"p")
    claim = place.board.claim("x", owner="me")
    assert claim is not None
    with suppress(dibs.DibsError):
        claim.fail()
    (task,) = place.board.find("x")
    assert (place.path / task.name).read_bytes() == b"p"


def test_an_add_that_finds_no_space_leaves_the_id_free(scratch: Path) -> None:
    place = Place(scratch)

    def full(path: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    place.port.before["create"] = full
    with pytest.raises(dibs.StorageError, match="free some space"):
        place.board.add("x", b"p")
    place.port.before.clear()
    place.board.add("x", b"p")


@pytest.mark.parametrize(
    ("name", "ident", "spelled"),
    [
        ("=2E.available", ".", "=2E"),
        ("v1=2E2.claimed", "v1.2", "v1=2E2"),
        ("x.f3.available", "x", "x.f3"),
    ],
)
def test_an_id_that_equals_the_escaped_form_of_another_is_refused_with_that_one(
    place: Place, name: str, ident: str, spelled: str
) -> None:
    (place.path / name).touch()
    with pytest.raises(dibs.Exists) as refused:
        place.board.add(spelled)
    refusal = str(refused.value)
    assert refusal.startswith(f"the id {ident!a} exists: now it is {name} ")
    assert repr(spelled) in refusal
    assert "forget" not in refusal
    assert place.names() == [name]


@pytest.mark.parametrize("forgets", [True, False])
def test_a_life_begins_above_a_purged_one_without_an_entry(place: Place, forgets: bool) -> None:
    def lives() -> int:
        place.board.add("k")
        claim = place.board.claim("k")
        assert claim is not None
        claim.done()
        place.board.purge(0)
        return claim.fence

    first = lives()
    place.board.forget("k")
    second = lives()
    (place.path / ".dibs/known/k.1").unlink()
    if forgets:
        place.board.forget("k")
    assert first < second < lives()
