"""A request whose answer was lost is asked again: no claim is released under who has it then."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.serve.lock_desk import Answer
from dibs.serve.tokens import Principal
from tests.core import tools
from tests.serve import retrying
from tests.serve.http_client import HttpClient, until
from tests.serve.retrying import FETCHED, KINDS, Retrying
from tests.serve.server_process import ServerProcess

Pair = tuple[ServerProcess, ServerProcess]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers before one directory; the first soon releases what no one asked for again."""
    board: Path = tmp_path_factory.mktemp("served") / "board"
    first, other = ServerProcess(board, fetched=FETCHED), ServerProcess(board)
    yield first, other
    assert (first.stop(), other.stop()) == (0, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["key", "nonce"])
def test_what_one_server_made_and_gave_away_again_stays(pair: Pair, kind: str, by: str) -> None:
    server, _ = pair
    mine = Retrying(server, kind)
    headers: dict[str, str] = {}
    again: dict[str, Any] = {}
    if by == "key":
        headers["X-Request-Key"] = "k"
    elif kind == "named lock":
        mine.client = mine.client.as_agent("web-3")  # by which it is known without a nonce
    else:
        mine.body["nonce"] = "00000000AF"
        again["again"] = True
    with server.stopped():
        mine.give_up(headers)
        second = mine.client.connect()
        body = json.dumps(mine.body | again).encode()
        second.request("POST", mine.path, body, mine.client.headers(headers))
    made = json.loads(second.getresponse().read())
    second.close()
    mine.finish(mine.client, made)


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_server_gave_away_again_stays(pair: Pair, kind: str) -> None:
    first, other = pair
    mine, key = Retrying(first, kind), {"X-Request-Key": "k"}
    there = HttpClient(other.url, mine.client.token)
    with first.stopped():
        mine.give_up(key)
    until(lambda: any(task.live for task in mine.board.find(mine.id)))
    mine.finish(there, there.post(mine.path, mine.body, headers=key))


def test_an_answer_that_is_kept_stays_the_same_after_its_claim_has_ended(pair: Pair) -> None:
    mine, key = Retrying(pair[0], "task"), {"X-Request-Key": "k"}
    made = mine.client.post(mine.path, mine.body, headers=key)
    mine.finish(mine.client, made)
    assert mine.client.post(mine.path, mine.body, headers=key) == made
    assert [task.state for task in mine.board.find(mine.id)] == ["done"]


@pytest.mark.parametrize("then", ["", "paused", "full"])
def test_a_claim_that_is_found_by_its_name_may_be_that_of_another_server(
    scratch: Path, then: str
) -> None:
    """Both make the same name for one request: neither records, requeues or undoes the other's."""
    other = dibs.open(scratch / "board", create=True)
    other.add("x")
    disk = tools.Movable(scratch / "board", tools.World(scratch))
    made: list[dibs.Claim] = []

    def full(path: str) -> None:
        if "records" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def faster(path: str) -> None:
        if made or not path.startswith("x."):
            return
        claim = other.claim("x", owner="me", nonce="00000000AF")
        assert claim is not None
        made.append(claim)
        if then == "paused":
            other.pause_claims("deploy")
        elif then == "full":
            disk.before["create"] = full

    disk.before["rename"] = faster
    with pytest.raises(dibs.Uncertain, match="another process may have made it"):
        tools.opened(disk).claim("x", owner="me", nonce="00000000AF")
    (claim,) = made
    assert [task.name for task in other.find("x")] == [claim.task.name]
    claim.done()


def test_a_turn_that_was_left_does_not_stop_who_has_the_claim(scratch: Path) -> None:
    """Its process was killed between its two steps."""
    dibs.open(scratch / "board", create=True)
    world = tools.World(scratch)
    board = tools.opened(tools.Movable(scratch / "board", world))
    name = board.acquire("x", owner="me", ttl=60).name
    turn = scratch / "board" / ".dibs" / "aside" / name
    turn.write_text("00000000AF")
    world.advance(15)
    (found,) = board.check()
    assert (found.name, found.repair, found.fault) == (f".dibs/aside/{name}", None, False)
    board.attach(name).beat()
    assert board.repair() == []
    assert not turn.exists()
    turn.write_text("00000000AF")
    began = world.boot
    board.attach(name).confirm()
    assert world.boot == began, "it waited for the turn"
    assert not turn.exists()
    assert not board.attach(name).release_unconfirmed()
    assert board.check() == []
    board.attach(name).verify()


def test_a_session_lives_on_while_one_server_cannot_look_at_it(scratch: Path) -> None:
    other = dibs.open(scratch / "board", create=True)
    disk = tools.Movable(scratch / "board", tools.World(scratch))
    disk.sleep = time.sleep  # type: ignore[assignment, method-assign]

    def fail(path: str) -> None:
        if "session" in path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def away() -> None:
        """Its locks can still be released: one look that fails is enough to lose them."""
        disk.before.update(dict.fromkeys(("stat", "read"), fail))

    retrying.outlive(tools.opened(disk), other, away, disk.before.clear)


def test_a_session_without_a_sign_of_life_ends_through_any_server(scratch: Path) -> None:
    board = scratch / "board"
    retrying.expire(dibs.open(board, create=True), dibs.open(board))


def test_a_lock_that_left_a_session_over_another_server_outlives_it(scratch: Path) -> None:
    board = scratch / "board"
    retrying.leave(dibs.open(board, create=True), dibs.open(board))


def test_a_key_means_the_same_to_another_server(pair: Pair) -> None:
    first, other = pair
    client = first.client("olga", "operator")
    there = HttpClient(other.url, client.token)
    retrying.ask_both(client, there, dibs.open(first.board))


def test_two_servers_that_begin_a_session_for_one_request_at_a_time_begin_one(
    scratch: Path,
) -> None:
    first = retrying.Desk(dibs.open(scratch / "board", create=True)).sessions
    other = retrying.Desk(dibs.open(scratch / "board")).sessions
    look, mark = other._begun, "00000000AF"
    made: list[object] = []

    def early(who: Principal, mark: str) -> Answer | None:
        """The first look is too early: the other server begins the session right after it."""
        if made:
            return look(who, mark)
        made.append(first.begin(retrying.ANN, None, 60, mark)["session_id"])
        return None

    other._begun = early  # type: ignore[method-assign]
    assert other.begin(retrying.ANN, None, 60, mark)["session_id"] == made[0]
