"""The Python API refuses invalid arguments before it changes anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dibs
from tests.contract.test_arguments import Verb
from tests.core.tools import Movable, Place

pytestmark = pytest.mark.fast("dibs")

WRONG: tuple[object, ...] = (
    None,
    7,
    -1.5,
    float("nan"),
    True,
    b"x",
    {},
    ["x"],
    object(),
    "\ud800",
    "x\0",
    "x" * 9999,
)


def _claim(board: dibs.Board) -> dibs.Claim:
    claim = board.claim("x", owner="me")
    assert claim is not None
    return claim


def _ended(board: dibs.Board, verb: str) -> dibs.Task:
    task = getattr(_claim(board), verb)()
    assert isinstance(task, dibs.Task)
    return task


CALLS: dict[str, Callable[[dibs.Board, Any], object]] = {
    "add id": lambda b, v: b.add(v),
    "add payload": lambda b, v: b.add("new", v),
    "add priority": lambda b, v: b.add("new", priority=v),
    "claim id": lambda b, v: b.claim(v),
    "claim owner": lambda b, v: b.claim(owner=v),
    "claim ttl": lambda b, v: b.claim(ttl=v),
    "claim metadata": lambda b, v: b.claim(metadata=v),
    "claim process": lambda b, v: b.claim(process=v),
    "claim broken process": lambda b, v: b.claim(process=dibs.Process(v, "b", "n", 1, 2)),
    "claim broken pid": lambda b, v: b.claim(process=dibs.Process("h", "b", "n", v, 2)),
    "acquire name": lambda b, v: b.acquire(v),
    "acquire lease": lambda b, v: b.acquire("door", lease=v),
    "acquire owner": lambda b, v: b.acquire("door", owner=v),
    "acquire ttl": lambda b, v: b.acquire("door", ttl=v),
    "acquire metadata": lambda b, v: b.acquire("door", metadata=v),
    "acquire process": lambda b, v: b.acquire("door", process=v),
    "attach": lambda b, v: b.attach(v),
    "resume id": lambda b, v: b.resume(v, owner="me"),
    "resume name": lambda b, v: b.resume("x", name=v),
    "status": lambda b, v: b.status(v),
    "forget": lambda b, v: b.forget(v),
    "purge": lambda b, v: b.purge(v),
    "force-release name": lambda b, v: b.force_release(v, "why"),
    "reap name": lambda b, v: b.reap_claim(v),
    "requeue name": lambda b, v: b.requeue(v),
    "park name": lambda b, v: b.park(v, "why"),
    "park reason": lambda b, v: b.park("x.available", v),
    "park by": lambda b, v: b.park("x.available", "why", by=v),
    "prioritize name": lambda b, v: b.prioritize(v, 3),
    "prioritize": lambda b, v: b.prioritize("x.available", v),
    "prioritize by": lambda b, v: b.prioritize("x.available", 3, by=v),
    "undo": lambda b, v: b.undo(v),
    "resolve": lambda b, v: b.resolve(v),
    "claims with a key": lambda b, v: b.claims_with(v, "x"),
    "claims with a value": lambda b, v: b.claims_with("x", v),
    "entries of": lambda b, v: b.entries_of(v),
    "entries of one": lambda b, v: b.entries_of([v]),
    "wait ended": lambda b, v: b.wait_ended(v, 0),
    "wait ended of one": lambda b, v: b.wait_ended([v], 0),
    "wait ended seconds": lambda b, v: b.wait_ended([], v),
    "holder": lambda b, v: b.holder(v),
    "evidence": lambda b, v: b.evidence(v),
    "questions": lambda b, v: b.questions(v),
    "payload": lambda b, v: b.payload(v),
    "result": lambda b, v: b.result(v),
}
HELD: dict[str, Callable[[dibs.Board, dibs.Claim, Any], object]] = {
    "beat ttl": lambda _, c, v: c.beat(ttl=v),
    "beat metadata": lambda _, c, v: c.beat(metadata=v),
    "fail": lambda _, c, v: c.fail(v),
    "release": lambda _, c, v: c.release(v),
    "force-release reason": lambda b, c, v: b.force_release(c.name, v),
    "force-release by": lambda b, c, v: b.force_release(c.name, "why", by=v),
    "reap reason": lambda b, c, v: b.reap_claim(c.name, v),
    "park a claim": lambda b, c, v: b.park(c.name, v),
}


def tree(place: Place) -> list[str]:
    """All names of the board except the journal and the clock files."""
    hidden = place.path / ".dibs"
    mine = [str(p) for f in ("new", "records", "known", "gone") for p in (hidden / f).glob("*")]
    return sorted(place.names() + mine)


def refused(place: Place, call: Callable[[], object]) -> bool:
    """Whether a call is refused; then in one line and without a change to the board."""
    before = tree(place)
    try:
        call()
    except dibs.DibsError as error:
        words = str(error)
    else:
        return False
    assert "\n" not in words
    assert len(words) < 400
    assert tree(place) == before
    return True


@pytest.mark.parametrize("what", CALLS)
def test_an_invalid_argument_changes_nothing(scratch: Path, what: str) -> None:
    count = 0
    for number, value in enumerate(WRONG):
        folder = scratch / str(number)
        folder.mkdir()
        place = Place(folder)
        place.board.add("x")
        count += refused(place, lambda: CALLS[what](place.board, value))  # noqa: B023
    assert count > 3


@pytest.mark.parametrize("what", HELD)
def test_an_invalid_argument_leaves_the_claim_unchanged(scratch: Path, what: str) -> None:
    count = 0
    for number, value in enumerate(WRONG):
        folder = scratch / str(number)
        folder.mkdir()
        place = Place(folder)
        place.board.add("x")
        claim = _claim(place.board)
        count += refused(place, lambda: HELD[what](place.board, claim, value))  # noqa: B023
    assert count > 3


def test_a_draft_that_cannot_be_written_leaves_nothing(place: Place) -> None:
    with pytest.raises(TypeError):
        place.port.create(".dibs/new/draft", "text")  # type: ignore[arg-type]
    assert not os.listdir(place.path / ".dibs/new")


def interrupted(board: dibs.Board, port: Movable, at: int, act: Verb) -> bool:
    """Send Ctrl+C at one call of the disk, before or after it is made; whether it arrived."""
    calls = 0

    def count(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt

    for hooks in (port.before, port.after):
        hooks.update(dict.fromkeys(("stat", "create", "rename", "touch", "link", "unlink"), count))
    try:
        act(board)
    except KeyboardInterrupt:
        return True
    finally:
        port.before.clear()
        port.after.clear()
    return False


@pytest.mark.parametrize(
    ("act", "lay"),
    [
        (lambda board: board.claim("x", ttl=2), lambda board: board.add("x")),
        (lambda board: board.claim(ttl=2), lambda board: board.add("x")),
        (lambda board: board.acquire("x", ttl=2), lambda board: board.acquire("x").release()),
    ],
    ids=["claim an id", "claim the next", "acquire"],
)
def test_ctrl_c_at_any_moment_leaves_no_orphaned_claim_with_a_short_lease(
    scratch: Path, act: Verb, lay: Verb
) -> None:
    requeued, at, came = 0, 0, True
    while came:
        at += 1
        folder = scratch / str(at)
        folder.mkdir()
        place = Place(folder, ttl=86400)
        lay(place.board)
        (before,) = place.board.find("x")
        came = interrupted(*place.another(), at, act)
        (task,) = place.board.find("x")
        requeued += not task.live and task.fence > before.fence
        assert not task.live or place.records() == [task.stem], f"at call {at}"
    assert at > 10
    assert requeued, "it also came between the rename and the record"


@pytest.mark.parametrize("where", ["\ud800", "a\ud800/b"])
def test_a_path_that_no_file_system_can_have_is_refused(where: str) -> None:
    with pytest.raises(dibs.BoardMissing, match="no path can hold"):
        dibs.open(where)


def test_a_pause_of_more_seconds_than_a_clock_has_is_refused(scratch: Path) -> None:
    board = Place(scratch).board
    for seconds in (10**400, 10**9999):
        with pytest.raises(dibs.BadName, match="a pause must last"):
            board.pause_claims("noon", seconds=seconds)
