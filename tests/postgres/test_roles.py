"""Roles: a reader changes nothing, a worker does no operator's act, whatever SQL it sends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from queue import SimpleQueue
from typing import NamedTuple

import pytest
from textual.pilot import Pilot

import dibs
from dibs.board import make_roles, upgrade
from dibs.model.settings import Settings
from dibs.postgres.libpq import Connection, ServerError
from dibs.postgres.sessions import connected
from dibs_tui.app import DibsApp
from tests.contract.command import Command
from tests.patience import PATIENCE
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server
from tests.tui.live import drive, text_of, until

_numbers = count(1)
ROLES = ("reader", "worker", "operator")
TABLES = (
    *(
        "meta",
        "history",
        "task",
        "payload",
        "claim",
        "event",
        "question",
        "result",
        "output",
    ),
    *("pause", "waiter"),
)


class People(NamedTuple):
    """A board with a login for each role."""

    site: Site
    where: dict[str, str]

    def board(self, role: str) -> dibs.Board:
        return dibs.open(self.where[role])

    def sql(self, role: str) -> Connection:
        return connected(self.where[role])


@pytest.fixture
def people(shared_server: Server) -> People:
    site = new_site(shared_server, Settings(retry=()))
    names = make_roles(site.where)
    where = {}
    for role, name in zip(ROLES, names, strict=True):
        login = f"{role}_{next(_numbers)}"
        site.sql(f"CREATE ROLE {login} LOGIN IN ROLE {name}")
        where[role] = site.where.replace("//dibs@", f"//{login}@")
        assert where[role] != site.where
    return People(site, where)


def every_change(board: dibs.Board, claim: dibs.Claim) -> list[Callable[[], object]]:
    """All that a role may try, on a board with the tasks `a` and `held` and a done one."""
    (done,) = board.find("done")
    (asked,) = board.find("asked")
    return [
        lambda: board.park("a.available", "no"),
        lambda: board.prioritize("a.available", 9),
        lambda: board.requeue(done.name),
        lambda: board.force_release(claim.name, "mine now"),
        lambda: board.answer(asked.name, "yes"),
        lambda: board.pause_claims("stop"),
        lambda: board.purge(0),
        lambda: board.undo(),
    ]


def filled(people: People) -> dibs.Claim:
    board = people.board("operator")
    for ident in ("done", "asked", "held", "a"):
        board.add(ident, ident.encode())
    task = board.claim("done")
    assert task is not None
    task.done(b"result")
    asking = board.claim("asked")
    assert asking is not None
    asking.ask("which?")
    board.prioritize("a.available", 8)
    board.prioritize("a.f0p8.available", 5)
    claim = board.claim("held", owner="web-3")
    assert claim is not None
    return claim


def test_a_reader_sees_everything_and_changes_nothing(people: People) -> None:
    claim = filled(people)
    board, before = people.board("reader"), people.site.sql("SELECT count(*) FROM dibs.event")
    assert {entry.id for entry in board.entries()} == {"done", "asked", "held", "a"}
    assert board.payload(board.find("a")[0]) == b"a"
    assert board.result(board.find("done")[0]) == b"result"
    assert [event.verb for event in board.log.of("done")] == ["add", "claim", "done"]
    assert board.holder(claim.task) is not None
    assert not board.check()
    assert board.log.totals()["adds"] == 4
    attached = board.attach(claim.name)
    refused: list[Callable[[], object]] = [
        *every_change(board, claim),
        lambda: board.add("new"),
        lambda: board.claim(),
        lambda: board.claim_many(2),
        lambda: board.acquire("lock"),
        attached.beat,
        attached.done,
        attached.release,
        lambda: attached.note("hello"),
        lambda: board.forget("done"),
    ]
    for change in refused:
        with pytest.raises((dibs.ReadOnly, dibs.Refused)):
            change()
    assert people.site.sql("SELECT count(*) FROM dibs.event") == before
    command = Command(people.where["reader"], process=True)
    assert "held" in command("ls")
    assert "connect as a role that may do this" in command("claim", code=3)


@pytest.mark.parametrize("role", ["reader", "worker"])
def test_no_sql_of_their_own_changes_a_table(people: People, role: str) -> None:
    filled(people)
    conn = people.sql(role)
    for table in TABLES:
        for sql in (
            f"DELETE FROM dibs.{table}",
            f"TRUNCATE dibs.{table}",
            f"INSERT INTO dibs.{table} SELECT * FROM dibs.{table}",
            f"DROP TABLE dibs.{table}",
            f"ALTER TABLE dibs.{table} DISABLE TRIGGER ALL",
        ):
            with pytest.raises(ServerError) as refused:
                conn.execute(sql)
            assert refused.value.state in ("42501", "428C9"), (sql, str(refused.value))
    for sql in (
        "UPDATE dibs.task SET state = 'done'",
        "UPDATE dibs.claim SET beat = 0",
        "CREATE TABLE dibs.mine ()",
        "CREATE OR REPLACE FUNCTION dibs.clock() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
        "DROP SCHEMA dibs CASCADE",
        "SELECT dibs.sweep('done', 99)",
        "SELECT dibs.turn()",
        "SELECT dibs.purge(0, 1000, 'me', 'x', false)",
        "SELECT dibs.forget('done', 'me', 'x')",
        "SELECT dibs.pause('x', NULL, true, '', 'pause', '', '', 'me', '', 'x')",
    ):
        with pytest.raises(ServerError) as refused:
            conn.execute(sql)
        assert refused.value.state == "42501", (sql, str(refused.value))


@pytest.mark.parametrize("role", ROLES)
def test_every_role_watches(people: People, role: str) -> None:
    filled(people)
    deltas: SimpleQueue[dibs.Delta] = SimpleQueue()
    watch = dibs.watch(people.where[role], deltas.put, poll=0.1)
    try:
        deltas.get(timeout=PATIENCE)
        people.board("operator").add("news")
        seen: set[str] = set()
        while "news" not in seen:
            seen |= {task.id for task in deltas.get(timeout=PATIENCE).added}
        assert watch.health.trouble is None
    finally:
        assert watch.stop(PATIENCE)


def test_a_reader_may_call_no_function_that_changes_anything(people: People) -> None:
    allowed = people.site.sql(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'dibs'::regnamespace "
        "AND provolatile <> 'i' AND has_function_privilege(%s, oid, 'EXECUTE')",
        people.where["reader"].partition("//")[2].partition("@")[0],
    )
    assert sorted(allowed) == [("clock",), ("is_foreign",), ("lineage",), ("server",)]


def test_all_functions_that_run_as_their_owner_choose_their_search_path(people: People) -> None:
    rows = people.site.sql(
        "SELECT proname, proconfig::text FROM pg_proc WHERE pronamespace = 'dibs'::regnamespace "
        "AND prosecdef"
    )
    assert len(rows) > 10
    assert {config for _, config in rows} == {'{"search_path=dibs, pg_temp"}'}


def test_a_worker_does_all_its_work(people: People) -> None:
    board = people.board("worker")
    for ident in ("a", "b", "c", "d", "e", "f"):
        board.add(ident, b"x")
    one = board.claim(owner="w")
    assert one is not None
    one.beat(note="half", ttl=90, metadata="m")
    one.note("more")
    one.keep_output(8192).keep(b"text", 0)
    one.verify()
    one.done(b"result")
    two, three, four = board.claim_many(3, owner="w")
    assert two.fail("no").state == "available"
    three.release()
    four.ask("which?")
    held = board.claim("b", owner="w")
    assert held is not None
    again = board.resume("b", owner="w", name=held.name)
    while again.fail("no").state == "available":
        found = board.claim("b", owner="w")
        assert found is not None
        again = found
    lock = board.acquire("lock", owner="w")
    lock.beat()
    lock.release()
    board.acquire("lock", owner="w", slots=3).release()
    board.add("soon", start_in=0.01)
    presence = board.presence("w")
    assert board.wait_for(lambda: board.claim("soon"), PATIENCE, presence=presence) is not None
    board.log.note("report", "done for today")
    assert not board.reap().refused
    assert people.site.contradictions() == []


@pytest.mark.parametrize(("role", "why"), [("reader", "may only look"), ("worker", "is a worker")])
def test_a_dashboard_that_may_not_act_is_read_only_from_the_start(
    people: People, role: str, why: str
) -> None:
    where = people.where[role]

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert "READ-ONLY" in text_of(app)
        assert "dibs add hello" not in text_of(app)
        reason = f"Read-only: {dibs_user(where)} {why}: connect as an operator"
        assert reason in text_of(app)
        people.board("operator").add("a")
        await until(pilot, lambda: "a.available" in app.model.tasks)
        for key, name in ("P", "park"), ("B", "pause board"):
            await pilot.press(key)
            await until(pilot, lambda: f"read-only: {dibs_user(where)} {why}" in text_of(app))
            assert f"{name}:" in text_of(app)
            assert app.screen is app.board_screen

    drive(where, steps)


def test_the_dashboard_of_an_operator_acts(people: People) -> None:
    board, where = people.board("operator"), people.where["operator"]
    board.add("a")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert "READ-ONLY" not in text_of(app)
        await pilot.press("B")
        await until(pilot, lambda: "Pause new claims" in text_of(app))

    drive(where, steps)


def test_a_login_that_only_reads_the_tables_of_a_board_without_roles_is_read_only(
    shared_server: Server,
) -> None:
    site, login = new_site(shared_server, Settings()), f"plain_{next(_numbers)}"
    site.sql(f"CREATE ROLE {login} LOGIN")
    site.sql(f"GRANT USAGE ON SCHEMA dibs TO {login}")
    site.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA dibs TO {login}")
    where = site.where.replace("//dibs@", f"//{login}@")
    deltas: SimpleQueue[dibs.Delta] = SimpleQueue()
    watch = dibs.watch(where, deltas.put)
    try:
        deltas.get(timeout=PATIENCE)
        assert watch.health.why_read_only == f"{login} may only look: connect as an operator"
    finally:
        assert watch.stop(PATIENCE)


def dibs_user(where: str) -> str:
    """The user of an address."""
    return where.partition("//")[2].partition("@")[0]


def test_a_worker_reaps_what_has_expired(people: People) -> None:
    board = people.board("worker")
    board.add("a")
    assert board.claim("a", ttl=1) is not None
    found = board.wait_for(lambda: board.reap().tasks or None, PATIENCE)
    assert found is not None
    assert [task.state for task in found] == ["available"]


def test_a_worker_does_no_act_of_an_operator(people: People) -> None:
    claim = filled(people)
    board = people.board("worker")
    before = people.site.sql("SELECT name, fence FROM dibs.task ORDER BY eid")
    for change in every_change(board, claim):
        with pytest.raises(dibs.ReadOnly):
            change()
    assert people.site.sql("SELECT name, fence FROM dibs.task ORDER BY eid") == before
    claim.beat()


def test_a_worker_cannot_disguise_such_an_act(people: People) -> None:
    claim = filled(people)
    conn = people.sql("worker")
    ((done,),) = conn.execute("SELECT name FROM dibs.task WHERE eid = 'done'")
    parked = "failed/a.f0.me-0123456789"
    move = "SELECT dibs.move(%s, %s, %s, %s, %s, %s, 0, 0, 0, %s, %s, '', '', 'x', NULL, false, "
    move += "NULL, NULL, NULL, NULL)"
    stem = claim.name
    nonce = claim.task.claim
    for given in (
        ("a", "a.available", parked, "failed", 0, 5, "me-0123456789", "fail"),
        ("a", "a.available", "a.f0p9.available", "available", 0, 9, "", "release"),
        ("done", done, "done.f1.available", "available", 0, 5, "", "release"),
        ("held", f"{stem}.claimed", f"failed/{stem}", "failed", 0, 5, nonce, "fail"),
        ("held", f"{stem}.claimed", "x.available", "available", 0, 5, "", "release"),
        ("held", f"{stem}.claimed", "held.f1p9.available", "available", 0, 9, "", "release"),
        ("held", f"{stem}.claimed", "held.f1.available", "available", 0, 5, "", "force-release"),
    ):
        with pytest.raises(ServerError) as refused:
            conn.execute(move, given)
        assert refused.value.state == "42501", (given, str(refused.value))
    for sql in (
        f"SELECT dibs.take('{done}', 'me-0123456789', '', 60, false, 'claim', '', '', false, "
        "NULL, false)",
        "SELECT dibs.write('a', 'park', '', '', 'ada', 'a lie', 'y')",
        "SELECT dibs.write('', 'pause', '', '', 'ada', 'a lie', 'z')",
    ):
        with pytest.raises(ServerError) as refused:
            conn.execute(sql)
        assert refused.value.state == "42501", (sql, str(refused.value))
    people.board("operator").pause_claims("stop")
    with pytest.raises(ServerError) as refused:
        conn.execute(
            "SELECT dibs.take('a.available', 'me-0123456789', '', 60, false, 'claim', '', '', "
            "false, NULL, false)"
        )
    assert refused.value.state == "42501"
    claim.verify()


def test_an_operator_does_everything(people: People) -> None:
    claim = filled(people)
    board = people.board("operator")
    park, *acts, undo = every_change(board, claim)
    for change in acts:
        change()
    board.prioritize("a.f0p9.available", 5)
    park()
    undo()
    board.resume_claims([pause.name for pause in board.pauses()])
    task = board.claim("done")
    assert task is not None
    task.done()
    assert board.purge(0) == 1
    board.forget("done")
    assert people.site.contradictions() == []


def test_roles_can_be_made_again_and_survive_an_upgrade(people: People) -> None:
    assert make_roles(people.site.where) == make_roles(people.site.where)
    people.site.sql("UPDATE dibs.meta SET value = '0' WHERE key = 'format'")
    assert upgrade(people.site.where)
    people.board("worker").add("a")
    with pytest.raises(dibs.ReadOnly):
        people.board("worker").park("a.available", "no")


def test_the_command_names_the_roles(shared_server: Server) -> None:
    where = shared_server.create(f"roles_{next(_numbers)}")
    command = Command(where, process=True)
    assert command("init", "--roles").startswith("postgresql://")
    assert "_operator" in command("--json", "init", "--roles")
    roles = shared_server.sql("SELECT rolname FROM pg_roles WHERE rolname LIKE 'roles\\_%'")
    assert len(roles) == 3


def test_a_directory_has_no_roles(tmp_path: object) -> None:
    assert "has no roles" in Command(str(tmp_path), process=True)("init", "--roles", code=2)
