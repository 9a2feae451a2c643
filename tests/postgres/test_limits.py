"""What a worker's SQL writes is within the limits, and what is outside them stops no one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest

import dibs
from dibs.board import upgrade
from dibs.model import names
from dibs.postgres.libpq import ServerError
from dibs.postgres.sessions import connected
from tests.contract.command import Command
from tests.patience import PATIENCE
from tests.postgres.boards import Site

REFUSED = ("22023", "23514", "42501")
TTLS = ("1e300", "'NaN'", "'Infinity'", "'-Infinity'", "0.5", "-1", "86401", "NULL")
LONG, CONTROL = "repeat('x', 5000)", "E'a\\nb'"
CALLS = {
    "an escape that is none": "SELECT dibs.add('a=4', '', 5::smallint, 0, '', 'me', 'act')",
    "an escaped letter": "SELECT dibs.add('a=41', '', 5::smallint, 0, '', 'me', 'act')",
    "an empty id": "SELECT dibs.add('', '', 5::smallint, 0, '', 'me', 'act')",
    "a long id": f"SELECT dibs.add({LONG}, '', 5::smallint, 0, '', 'me', 'act')",
    "a line break": f"SELECT dibs.add({CONTROL}, '', 5::smallint, 0, '', 'me', 'act')",
    "priority 99": "SELECT dibs.add('b', '', 99::smallint, 0, '', 'me', 'act')",
    "priority -7": "SELECT dibs.add('b', '', (-7)::smallint, 0, '', 'me', 'act')",
    "a folder": "SELECT dibs.add('b', 'anywhere', 5::smallint, 0, '', 'me', 'act')",
    "a start": "SELECT dibs.add('b', '', 5::smallint, 999999999999, '', 'me', 'act')",
    "no start": "SELECT dibs.add('b', '', 5::smallint, -5, '', 'me', 'act')",
    "an owner": f"SELECT dibs.add('b', '', 5::smallint, 0, '', {CONTROL}, 'act')",
    "a claim": "SELECT dibs.take(NULL, 'me', '', 60, false, 'claim', '', '', false, '{{}}', false)",
    "a record": "SELECT dibs.take(NULL, 'me-0123456789', repeat('x', 20000)::bytea, 60, false, "
    "'claim', '', '', false, '{{}}', false)",
    "a verb": f"SELECT dibs.take(NULL, 'me-0123456789', '', 60, false, {LONG}, '', '', false, "
    "'{{}}', false)",
    "many": "SELECT dibs.take_many(ARRAY['me'], '', 60, false, 'claim', '', '', false, '{{}}', "
    "false)",
    "none of many": "SELECT dibs.take_many('{{}}', '', 60, false, 'claim', '', '', false, '{{}}', "
    "false)",
    "a note": "SELECT dibs.note('held', '{held}', repeat('x', 1000000))",
    "a note in lines": f"SELECT dibs.note('held', '{{held}}', {CONTROL})",
    "a beat's note": "SELECT dibs.beat('held', '{held}', NULL, NULL, repeat('x', 1000000))",
    "a beat's record": "SELECT dibs.beat('held', '{held}', NULL, repeat('x', 20000)::bytea, NULL)",
    "a reason": "SELECT dibs.move('held', '{held}', 'held.f1.available', 'available', 0, "
    "5::smallint, 0, 0, 0, '', 'release', '', repeat('x', 1000000), 'x', NULL, false, NULL, NULL, "
    "0, 0)",
    "a result": "SELECT dibs.move('held', '{held}', 'done/{stem}', 'done', 0, 5::smallint, 0, 0, "
    "0, '{claim}', 'done', '', '', 'x', NULL, false, repeat('x', 100000)::bytea, NULL, 0, 0)",
    "a name": "SELECT dibs.move('held', '{held}', 'x', 'done', 0, 5::smallint, 0, 0, "
    "0, '{claim}', 'done', '', '', 'x', NULL, false, NULL, NULL, 0, 0)",
    "a state": "SELECT dibs.move('held', '{held}', 'held.f1.gone', 'gone', 0, 5::smallint, 0, 0, "
    "0, '', 'done', '', '', 'x', NULL, false, NULL, NULL, 0, 0)",
    "a line of the log": "SELECT dibs.write('held', 'report', '', '', 'me', repeat('x', 1000000), "
    "'x')",
    "an output": "SELECT dibs.keep('x', '', 1, 0, false, 'x', 0)",
    "a worker that waits": "SELECT dibs.wait('x', 'x')",
    "what waits": "SELECT dibs.wait('me-0123456789', repeat('x', 10000)::bytea)",
}
ROWS = {
    "an empty id": "INSERT INTO dibs.task VALUES ('-', '', 'available', 0, 0, 5, 0, 0, 0, '', 0, "
    "1)",
    "a long id": f"INSERT INTO dibs.task VALUES ({LONG}, {LONG} || '.available', 'available', 0, "
    "0, 5, 0, 0, 0, '', 0, 1)",
    "control characters": f"INSERT INTO dibs.task VALUES ({CONTROL}, {CONTROL} || '.available', "
    "'available', 0, 0, 5, 0, 0, 0, '', 0, 1)",
    "priority 99": "INSERT INTO dibs.task VALUES ('p', 'p.f0p99.available', 'available', 0, 0, 99, "
    "0, 0, 0, '', 0, 1)",
    "priority -7": "INSERT INTO dibs.task VALUES ('p', 'p.f0p-7.available', 'available', 0, 0, -7, "
    "0, 0, 0, '', 0, 1)",
    "another name": "INSERT INTO dibs.task VALUES ('A', 'B.available', 'available', 0, 0, 5, 0, 0, "
    "0, '', 0, 1)",
    "a fence": "INSERT INTO dibs.task VALUES ('A', 'A.f9223372036854775807.available', "
    "'available', 9223372036854775807, 0, 5, 0, 0, 0, '', 0, 1)",
    "a due task": "INSERT INTO dibs.task VALUES ('A', 'A.f0n-1.later', 'later', 0, 0, 9, 0, 0, "
    "-1, '', 0, 1)",
    "an unknown state": "INSERT INTO dibs.task VALUES ('A', 'A.lost', 'lost', 0, 0, 5, 0, 0, "
    "0, '', 0, 1)",
    "an unknown folder": "INSERT INTO dibs.task VALUES ('A', 'nowhere/A.f0', 'free', 0, 0, 5, 0, "
    "0, 0, '', 0, 1)",
    "a note": "UPDATE dibs.claim SET note = repeat('x', 1000000)",
    "a note in lines": "UPDATE dibs.claim SET note = E'a\\nb'",
    "a reason": "UPDATE dibs.event SET reason = repeat('x', 1000000)",
}
ROWS |= {f"ttl {ttl}": f"UPDATE dibs.claim SET ttl = {ttl}" for ttl in TTLS if ttl != "NULL"}
LIMITED = (
    *("task", "payload", "claim", "question", "result", "output", "event", "pause", "waiter"),
)


@pytest.fixture
def held(site: Site) -> dibs.Claim:
    """A claim on a board with two more tasks."""
    board = site.board
    for ident in ("held", "x", "y"):
        board.add(ident)
    claim = board.claim("held", owner="web-3")
    assert claim is not None
    return claim


def works_on(site: Site) -> None:
    """Everybody claims, reaps and looks as before."""
    board = site.board
    one, *more = board.claim_many(1)
    assert (one.id, more) == ("x", [])
    two = board.claim(owner="me", ttl=60)
    assert two is not None
    assert two.id == "y"
    assert board.claim() is None
    two.beat()
    two.done()
    one.release()
    board.reap()
    again = board.claim("x")
    assert again is not None
    again.done()
    assert {"held", "x", "y"} <= {task.id for task in board.snapshot().tasks.values()}
    lock = board.acquire("door")
    lock.release()


@pytest.mark.parametrize("call", CALLS)
def test_a_function_refuses_what_is_outside_the_limits(
    site: Site, held: dibs.Claim, call: str
) -> None:
    given = {"held": held.task.name, "stem": held.name, "claim": held.task.claim}
    conn = connected(site.where)
    with pytest.raises(ServerError) as refused:
        conn.execute(CALLS[call].format(**given))
    assert refused.value.state in REFUSED, str(refused.value)
    works_on(site)


@pytest.mark.parametrize("ttl", TTLS)
def test_a_ttl_outside_the_limits_is_refused(site: Site, held: dibs.Claim, ttl: str) -> None:
    conn = connected(site.where)
    for call in (
        f"SELECT dibs.take(NULL, 'me-0123456789', '', {ttl}, false, 'claim', '', '', false, '{{}}',"
        " false)",
        f"SELECT dibs.take_many(ARRAY['me-0123456789'], '', {ttl}, false, 'claim', '', '', false, "
        "'{}', false)",
        *([f"SELECT dibs.beat('held', '{held.task.name}', {ttl}, NULL, NULL)"] * (ttl != "NULL")),
    ):
        with pytest.raises(ServerError) as refused:
            conn.execute(call)
        assert refused.value.state == "22023", call
    works_on(site)


def test_every_table_with_content_has_limits(site: Site) -> None:
    rows = site.sql(
        "SELECT relname FROM pg_constraint c JOIN pg_class r ON r.oid = conrelid "
        "WHERE c.connamespace = 'dibs'::regnamespace AND conname = 'limits'"
    )
    assert {name for (name,) in rows} == set(LIMITED)


@pytest.mark.parametrize("row", ROWS)
def test_a_table_refuses_such_a_row_also_by_hand(site: Site, held: dibs.Claim, row: str) -> None:
    conn = connected(site.where)
    with pytest.raises(ServerError) as refused:
        conn.execute(ROWS[row])
    assert refused.value.state == "23514", str(refused.value)


def unlimited(site: Site) -> None:
    """Let the tables take every row, as those of an earlier dibs did."""
    site.each([f"ALTER TABLE dibs.{table} DROP CONSTRAINT limits" for table in LIMITED])


@pytest.mark.parametrize("row", ROWS)
def test_claims_go_on_beside_such_a_row_and_a_check_names_it(
    site: Site, held: dibs.Claim, row: str
) -> None:
    unlimited(site)
    site.sql(ROWS[row])
    assert upgrade(site.where)
    found = [each for each in site.board.check() if each.kind == "limits"]
    assert found
    assert all("outside the limits" in each.text for each in found)
    works_on(site)


@pytest.mark.parametrize("row", [row for row in ROWS if row != "a fence"])
def test_claims_go_on_beside_such_a_row_also_before_the_upgrade(
    site: Site, held: dibs.Claim, row: str
) -> None:
    """With functions that know no limits."""
    unlimited(site)
    site.sql(
        "CREATE OR REPLACE FUNCTION dibs.is_task(p_eid text, p_name text, p_state text, p_fence "
        "bigint, p_attempts integer, p_priority smallint, p_question bigint, p_answer integer, "
        "p_not_before bigint, p_claim text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'"
    )
    site.sql(ROWS[row])
    assert "dibs.is_task" in [each.name for each in site.board.check()]
    board = site.board
    seen = set()
    while (claim := board.claim()) is not None:
        seen.add(claim.id)
        claim.done()
    board.reap()
    assert {"x", "y"} <= seen


def test_the_limits_are_those_of_names(site: Site) -> None:
    """What the command line may make, the tables take."""
    board = site.board
    longest = "x" * names.ID_BYTES
    for ident in (longest, "ü" * 20, "a b/c.d\n", "=41", "\udcff", "-", "_"):
        board.add(ident, priority=9)
        claim = board.claim(ident, owner="o" * 256, ttl=86_400, metadata="\x01" * 1024)
        assert claim is not None
        claim.beat(ttl=1, note="é" * 200)
        claim.fail("☃" * 5000)
    held = board.acquire("l" * 100, slots=100)
    held.release()
    assert not board.check()


def test_a_check_names_functions_that_are_not_the_shipped_ones(site: Site) -> None:
    site.board.add("a")
    assert not site.board.check()
    site.sql(
        "CREATE OR REPLACE FUNCTION dibs.wait(p_name text, p_data bytea) RETURNS void "
        "LANGUAGE sql AS ''"
    )
    site.sql("DROP FUNCTION dibs.tidy(bigint, bigint)")
    site.sql("ALTER TABLE dibs.pause DROP CONSTRAINT limits")
    found = {each.name: each.text for each in site.board.check()}
    assert set(found) == {"dibs.wait", "dibs.tidy"}
    assert "differs" in found["dibs.wait"]
    assert "missing" in found["dibs.tidy"]
    assert all("`dibs upgrade`" in text for text in found.values())
    assert "upgraded" in Command(site.where, process=True)("--json", "upgrade")
    assert not site.board.check()
    assert "current" in Command(site.where, process=True)("--json", "upgrade")
    site.sql("ALTER TABLE dibs.pause DROP CONSTRAINT limits")
    assert [each.name for each in site.board.check()] == ["dibs.pause"]
    assert upgrade(site.where)
    assert not site.board.check()


def test_a_check_names_a_row_of_the_board_that_is_missing(site: Site) -> None:
    site.board.add("a")
    site.sql("DELETE FROM dibs.meta WHERE key = 'settings'")
    ((line,),) = site.sql("DELETE FROM dibs.history RETURNING line")
    found = [(each.kind, each.name) for each in site.board.check()]
    assert found == [("meta", "settings"), ("history", str(line))]
    log = site.board.log
    events, cursor = log.since()
    assert [event.id for event in events] == ["a"]
    assert site.board.add("b").name == "b.available", "the next change begins a history"
    assert log.missed(cursor)
    assert log.since(cursor)[0] == []


def test_a_check_names_a_free_lock_in_the_folder_of_another(site: Site) -> None:
    board = site.board
    board.acquire("door").release()
    site.sql(
        "UPDATE dibs.task SET name = '.dibs/free/' || CASE WHEN name ~ '/000/' THEN '001' ELSE "
        "'000' END || '/door.f1' WHERE eid = 'door'"
    )
    assert [each.kind for each in site.board.check()] == ["limits"]


def test_an_upgrade_under_load_stops_no_worker(site: Site) -> None:
    board = site.board
    for number in range(150):
        board.add(f"task-{number}")

    def work(owner: str) -> int:
        own, count = site.board, 0
        while (claim := own.claim(owner=owner)) is not None:
            claim.beat()
            claim.done()
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(work, f"w{number}") for number in range(3)]
        upgrades = 0
        while not all(each.done() for each in working) or not upgrades:
            with suppress(dibs.StorageError):  # a deadlock, of which it is the one that gives way
                assert not upgrade(site.where)
            upgrades += 1
        assert sum(each.result(PATIENCE) for each in working) == 150
    assert site.contradictions() == []


def test_an_upgrade_that_would_make_the_workers_wait_gives_way(site: Site) -> None:
    with psycopg.connect(site.where) as other:
        other.execute("SELECT count(*) FROM dibs.task")
        with pytest.raises(dibs.StorageError, match="end the long transactions"):
            upgrade(site.where)
    assert not upgrade(site.where)


def test_tables_of_an_older_format_are_refused_also_by_an_upgrade(site: Site) -> None:
    site.sql("DROP TABLE dibs.history CASCADE")
    site.sql("UPDATE dibs.meta SET value = '1' WHERE key = 'format'")
    with pytest.raises(dibs.OlderFormat, match=r"has format 1: run `dibs upgrade`$"):
        dibs.open(site.where)
    with pytest.raises(dibs.OlderFormat, match="which no upgrade changes: make a new database"):
        dibs.board.upgrade(site.where)
