"""A server that lost its past, and one that has the past of another: fences and cursors know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dibs
from dibs.board import upgrade
from dibs.model.events import Cursor
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server, server, why_not
from tests.postgres.mutants import twins
from tests.postgres.restores import dumped, read, restored_over_the_board, started_as_a_primary

BURN = """
DO $$ BEGIN
  FOR n IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;
END $$
"""


@pytest.fixture
def elsewhere() -> Iterator[Server]:
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    with server() as found:
        yield found


def test_two_standbys_of_one_primary_give_no_fence_twice_and_hide_no_event() -> None:
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    twins()


def copied(site: Site, there: Server, database: str) -> dibs.Board:
    """The board restored from a dump of it."""
    dump = dumped(site)
    where = there.create(database)
    there.run("pg_restore", f"--dbname={where}", dump)
    return dibs.open(where)


@pytest.mark.parametrize("same", [False, True], ids=["another cluster", "the same cluster"])
def test_a_restored_dump_repeats_no_event_and_gives_no_fence_again(
    shared_server: Server, elsewhere: Server, same: bool
) -> None:
    site = new_site(shared_server)
    site.sql(BURN)  # its transactions have higher numbers than those of a new cluster
    board = site.board
    for ident in ("a", "b", "c"):
        board.add(ident)
    behind = board.log.end()
    board.add("unread")
    read_all = board.log.end()
    restored = copied(site, shared_server if same else elsewhere, f"{site.database}_restored")
    lost = board.claim("a")
    assert lost is not None
    board.add("lost")
    after = board.log.end()
    log = restored.log
    assert read(log, log.end())[0] == []
    assert read(log, behind)[0] == ["unread"]
    assert read(log, read_all)[0] == []
    assert list(log.oldest_first(until=log.end())) == list(log.oldest_first())
    here = log.end()
    taken = restored.claim("a")
    assert taken is not None
    assert taken.fence > lost.fence
    restored.add("new")
    for cursor, before in (here, []), (behind, ["unread"]), (read_all, []), (after, []):
        assert not log.missed(cursor)
        assert read(log, cursor)[0] == [*before, "a", "new"]
    assert list(log.oldest_first(until=log.end())) == list(log.oldest_first())
    assert restored.check() == []


def test_a_server_that_starts_again_goes_on_with_its_history(durable_server: Server) -> None:
    site = new_site(durable_server)
    board = site.board
    board.add("a")
    cursor = board.log.end()
    durable_server.restart()
    assert read(board.log, cursor)[0] == []
    claim = board.claim("a")
    assert claim is not None
    assert claim.fence == 1
    assert read(board.log, cursor)[0] == ["a"]
    assert site.floors() == []


def test_a_dump_restored_over_the_board_gives_no_fence_again(site: Site) -> None:
    restored_over_the_board(site)


def test_what_keeps_the_tables_keeps_the_history(site: Site) -> None:
    board = site.board
    board.add("a")
    site.sql("VACUUM FULL dibs.history")
    site.sql("VACUUM FREEZE dibs.history")
    site.sql("CLUSTER dibs.history USING history_pkey")
    upgrade(site.where)
    claim = site.board.claim("a")
    assert claim is not None
    assert claim.fence == 1
    assert site.floors() == []


def test_a_base_backup_that_is_started_as_a_primary_gives_no_fence_again(
    durable_server: Server,
) -> None:
    started_as_a_primary(new_site(durable_server))


def test_a_cursor_of_another_board_says_that_events_were_missed(site: Site) -> None:
    other = new_site(site.server)
    other.board.add("theirs")
    site.board.add("ours")
    log, cursor = site.board.log, other.board.log.end()
    assert log.missed(cursor)
    assert not log.missed(log.end())
    assert read(log, cursor)[0] == []
    site.board.add("next")
    assert read(log, log.since(cursor)[1])[0] == []


@pytest.mark.parametrize(
    "text", ["", "x", "1:1:", "1 1 1 1:1:;", "9" * 30, "1 1 1 2:1:", "1 1 1 0:0:"]
)
def test_what_is_no_cursor_is_refused_on_one_line(site: Site, text: str) -> None:
    with pytest.raises(dibs.DibsError) as caught:
        site.board.log.since(Cursor({text: 0}))
    assert "\n" not in str(caught.value)
    with pytest.raises(dibs.BadName, match="no cursor"):
        site.board.log.since(Cursor({}))
