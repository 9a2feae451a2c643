"""Two servers before one database, one of them slow: no claim is released under who has it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dibs
from dibs.model.sample import SECOND
from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.proxy import Loss, Proxy
from tests.serve import retrying
from tests.serve.http_client import HttpClient, until
from tests.serve.retrying import FETCHED, KINDS, Retrying
from tests.serve.server_process import ServerProcess

TAKE = b"dibs.take"
NONCE = "00000000AF"


@pytest.fixture
def proxy(shared_server: Server) -> Iterator[Proxy]:
    with Proxy(shared_server.socket) as found:
        yield found


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_server_gave_away_stays_when_the_slow_one_goes_on(
    site: Site, proxy: Proxy, tmp_path: Path, kind: str
) -> None:
    slow = ServerProcess(tmp_path, where=proxy.url(site.database), fetched=FETCHED)
    other = ServerProcess(tmp_path, where=site.where)
    try:
        mine = Retrying(slow, kind)
        key = {"X-Request-Key": "k"} if kind == "task" else {}
        if kind == "lock":
            mine.body["nonce"] = NONCE
        proxy.lose_text(TAKE, Loss.SILENCE)  # the database has done it, and its answer hangs
        connection = mine.client.connect()
        mine.send(connection, key)
        until(lambda: proxy.lost)
        connection.close()
        mine.body |= {"again": True} if kind == "lock" else {}
        there = HttpClient(other.url, mine.client.token)
        made = there.post(mine.path, mine.body, headers=key)
        proxy.cut()  # now it asks again, and learns that it has made the claim
        mine.finish(there, made)
    finally:
        assert (slow.stop(), other.stop()) == (0, 0)


def test_a_claim_without_an_answer_is_given_back_unless_another_answer_gave_it(
    site: Site, proxy: Proxy
) -> None:
    board = dibs.open(proxy.url(site.database))
    there = site.board
    for ident in ("x", "y", "z", "first"):
        there.add(ident)
    assert board.claim("first") is not None
    session = board._session  # type: ignore[attr-defined]
    session.patience = SECOND // 2
    database = proxy.target

    def unanswered(ident: str) -> str:
        proxy.lose_text(TAKE, Loss.ANSWER)
        session.connect()
        proxy.target = ("127.0.0.1", 1)
        with pytest.raises(dibs.Uncertain):
            board.claim(ident)
        proxy.target = database
        return there.find(ident)[0].stem

    given = unanswered("x")
    there.attach(given).confirm()  # as another server does that is asked again
    unanswered("y")
    assert board.claim("z") is not None
    assert there.find("x")[0].stem == given
    assert [event.verb for event in there.log.of("x")] == ["add", "claim"]
    assert there.find("y")[0].name == "y.f1.available"
    assert not session.unanswered


def test_a_claim_that_two_servers_made_for_one_request_is_undone_by_neither(
    site: Site, proxy: Proxy
) -> None:
    slow, there = dibs.open(proxy.url(site.database)), site.board
    database = proxy.target

    def both(ident: str, ask: Callable[[dibs.Board], dibs.Claim | None]) -> None:
        """The connection of the slow one is cut before its request, and the other one is faster."""
        given: list[dibs.Claim | None] = []
        slow._session.connect()  # type: ignore[attr-defined]
        proxy.lose_text(TAKE, Loss.REQUEST)
        proxy.target = ("127.0.0.1", 1)
        asked = threading.Thread(target=lambda: given.append(ask(slow)))
        asked.start()
        try:
            until(lambda: proxy.lost)
            given.append(ask(there))
        finally:
            proxy.target = database
            asked.join()
        made = [claim for claim in given if claim is not None]
        assert [claim.name for claim in made] == [there.find(ident)[0].stem] * 2
        assert [claim.release_unconfirmed("the client has gone") for claim in made] == [
            False
        ] * 2, "released"
        for claim in made:
            claim.verify()
        assert [event.verb for event in there.log.of(ident)].count("release") == 0

    there.add("x")
    both("x", lambda board: board.claim("x", owner="me", nonce=NONCE))
    both("y", lambda board: board.acquire("y", owner="me", nonce=NONCE[::-1]))


def test_a_confirmation_survives_a_crash_of_the_server(site: Site) -> None:
    """A heartbeat need not, but here a claim may be released because it was not beaten."""
    site.board.add("x")
    claim = site.board.claim("x")
    assert claim is not None
    commits: list[str] = []
    site.sql(
        "CREATE FUNCTION public.seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION '%', current_setting('synchronous_commit'); END $$"
    )
    site.sql(
        "CREATE CONSTRAINT TRIGGER seen AFTER UPDATE ON dibs.claim DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION public.seen()"
    )  # it runs at the end of the transaction
    for act in (claim.beat, claim.confirm):
        with pytest.raises(dibs.StorageError) as caught:
            act()
        commits += re.findall(r"ERROR: +(\w+)", str(caught.value))
    assert commits == ["off", "on"]


def test_a_session_lives_on_while_one_server_cannot_reach_the_database(
    site: Site, proxy: Proxy
) -> None:
    first = dibs.open(proxy.url(site.database))
    first._session.patience = 3 * SECOND // 4  # type: ignore[attr-defined]

    def back() -> None:
        """It comes back while the first server waits for it."""
        threading.Timer(0.4, proxy.listen).start()

    retrying.outlive(first, site.board, proxy.refuse, back)


def test_a_session_without_a_sign_of_life_ends_through_any_server(site: Site) -> None:
    retrying.expire(site.board, site.board)


def test_a_lock_that_left_a_session_over_another_server_outlives_it(site: Site) -> None:
    retrying.leave(site.board, dibs.open(site.where))


def test_a_key_means_the_same_to_another_server(site: Site, tmp_path: Path) -> None:
    first = ServerProcess(tmp_path, where=site.where)
    other = ServerProcess(tmp_path, where=site.where)
    try:
        client = first.client("olga", "operator")
        retrying.ask_both(client, HttpClient(other.url, client.token), site.board)
    finally:
        assert (first.stop(), other.stop()) == (0, 0)
