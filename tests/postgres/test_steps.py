"""Each step is done once, whatever happens to its answer, and compares the exact name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

import dibs
from dibs.model.sample import SECOND
from dibs.postgres import claims as making
from dibs.postgres import sessions
from dibs.postgres.engine import PostgresBoard
from dibs.postgres.libpq import Row
from dibs.postgres.sessions import AGAIN, Session
from tests.contract.command import Command
from tests.core.tools import in_child
from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.proxy import Proxy
from tests.postgres.server import Place


def session_of(board: dibs.Board) -> Session:
    assert isinstance(board, PostgresBoard)
    return board._session


def cut(place: Place) -> None:
    """End every connection to the board's database."""
    place.server.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        place.database,
    )


def whole(place: Place) -> None:
    """The rows agree with each other."""
    assert place.board.check() == []


def test_bytes_are_read_however_the_database_writes_them(place: Place) -> None:
    place.server.execute(
        f"ALTER DATABASE {place.database} SET bytea_output = 'escape'", place.database
    )
    cut(place)
    data = bytes(range(256)) + b"\\x41\\101\\\\"
    place.board.add("a", data)
    claim = place.board.claim(owner="me", metadata="k=\\x")
    assert claim is not None
    claim.beat()
    assert claim.payload() == data
    assert claim.done(data).state == "done"
    assert place.board.result(place.board.find("a")[0]) == data
    whole(place)
    place.server.execute(f"ALTER DATABASE {place.database} RESET bytea_output", place.database)


def test_a_claim_whose_row_is_gone_is_named_and_not_waited_for(place: Place) -> None:
    place.board.add("a")
    claim = place.board.claim(owner="me")
    assert claim is not None
    place.server.execute("DELETE FROM dibs.claim", place.database)
    with pytest.raises(dibs.StorageError, match=r"has no row of its claim: see `dibs check`$"):
        place.board.claim("a", owner="you")
    assert [finding.name for finding in place.board.check()] == [f"{claim.name}.claimed"]
    assert place.board.force_release(claim.name, "its row is gone").state == "available"
    whole(place)


def test_settings_that_are_gone_are_the_defaults_and_wrong_ones_are_named(place: Place) -> None:
    place.server.execute("DELETE FROM dibs.meta WHERE key = 'settings'", place.database)
    assert place.other().settings == dibs.Settings()
    place.server.execute("INSERT INTO dibs.meta VALUES ('settings', 'ttl = x')", place.database)
    with pytest.raises(dibs.NotABoard, match=r"`settings` in dibs\.meta is not valid TOML"):
        place.other()
    place.server.execute("UPDATE dibs.meta SET value = '' WHERE key = 'settings'", place.database)


def test_a_cut_connection_is_made_again_by_the_next_call(place: Place) -> None:
    board = place.board
    board.add("a")
    cut(place)
    claim = board.claim()
    assert claim is not None
    cut(place)
    claim.beat()
    cut(place)
    assert claim.done().state == "done"
    cut(place)
    assert [event.verb for event in board.log.of("a")] == ["add", "claim", "done"]
    whole(place)


class Lossy(Session):
    """A session that loses the first answer of every step, after the server has done it."""

    def step(self, sql: str, params: Sequence[object], what: str, until: int = 0) -> Row:
        super().step(sql, params, what, until)
        again = [True if each is AGAIN else each for each in params]
        return super().step(sql, again, what, until)


@pytest.fixture
def lossy(place: Place) -> PostgresBoard:
    session = Lossy(place.where, dibs.this_host())
    session.connect()
    return PostgresBoard(session)


def test_no_step_is_done_twice_if_its_answer_is_lost(place: Place, lossy: PostgresBoard) -> None:
    assert lossy.add("a", b"p").name == "a.available"
    assert lossy.add("b").name == "b.available"
    claim = lossy.claim("a")
    assert claim is not None
    assert (claim.id, claim.fence) == ("a", 1)
    claim.beat(note="half")
    assert claim.fail("no").attempts == 1
    claim = lossy.claim()
    assert claim is not None
    assert claim.fence == 2
    asked = claim.ask("which?")
    lossy.answer(asked.name, "that")
    claim = lossy.claim("a")
    assert claim is not None
    lossy.force_release(claim.name, "stuck")
    parked = lossy.park(lossy.find("a")[0].name, "no")
    lossy.undo(lossy.undoable("a"))
    assert parked.state == "failed"
    pause, _ = lossy.pause_claims("lunch")
    assert lossy.resume_claims([pause.name]) == (pause,)
    claim = lossy.claim("a")
    assert claim is not None
    claim.done(b"42")
    assert lossy.purge(0) == 1
    lossy.forget("a")
    lock = lossy.acquire("door")
    assert lossy.acquire("door", lease=lock.name).name == lock.name
    lock.release()
    verbs = [event.verb for event in lossy.log.of("a")]
    assert verbs == [
        "add", "claim", "fail", "claim", "ask", "answer", "claim", "force-release", "park", "undo",
        "claim", "done", "purge", "forget",
    ]  # fmt: skip
    assert [event.verb for event in lossy.log.oldest_first() if not event.id] == [
        "pause",
        "unpause",
    ]
    whole(place)


def test_a_claim_that_is_asked_for_again_gets_the_task_of_the_first(place: Place) -> None:
    place.board.add("a")
    place.board.add("b")
    session = session_of(place.board)
    terms: tuple[object, ...] = ("c-0123456789", b"{}", 60.0, False, "claim", "c", "", False, [])
    first = session.row(making._TAKE, (None, *terms, False))
    assert session.row(making._TAKE, (None, *terms, True)) == first
    counts = place.board.snapshot().counts()
    assert (counts["available"], counts["claimed"]) == (1, 1)


def test_threads_share_a_session_and_no_task_is_given_twice(place: Place) -> None:
    for number in range(60):
        place.board.add(f"t{number}")

    def work() -> list[str]:
        found = []
        while (claim := place.board.claim()) is not None:
            claim.beat()
            claim.done()
            found.append(claim.id)
        return found

    with ThreadPoolExecutor(4) as pool:
        done = [future.result(PATIENCE) for future in [pool.submit(work) for _ in range(4)]]
    assert sorted(name for each in done for name in each) == sorted(f"t{n}" for n in range(60))
    whole(place)


def test_a_forked_child_has_a_connection_of_its_own(place: Place) -> None:
    place.board.add("a")
    name = in_child(lambda: getattr(place.board.claim(process=os.getppid()), "name", ""))
    assert place.board.find("a")[0].stem == name
    place.board.attach(name).done()


def test_a_pause_waits_for_a_claim_that_has_not_looked_for_it(place: Place) -> None:
    import psycopg

    place.board.add("a")
    with psycopg.connect(place.where) as slow:  # a claim that was stopped before its commit
        slow.execute(
            making._TAKE,
            (None, "c-0123456789", b"{}", 60.0, False, "claim", "c", "", False, [], False),
        )
        listed: list[tuple[str, ...]] = []

        def pause() -> None:
            _, held = place.other().pause_claims("deploy")
            listed.append(tuple(task.id for task in held))

        thread = threading.Thread(target=pause)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        slow.commit()
        thread.join(PATIENCE)
    assert listed == [("a",)]


def test_a_reaper_leaves_a_claim_that_beats_after_its_look(place: Place) -> None:
    from dibs.postgres import reading, reaping

    place.board.add("a")
    claim = place.board.claim(ttl=10)
    assert claim is not None
    session = session_of(place.other())
    place.advance(11)
    found, now = reading.holder(session, claim.task), session.now()
    assert found is not None
    place.server.execute("UPDATE dibs.claim SET beat = dibs.clock()", place.database)
    assert reaping.reap_one(session, found, now) is None
    assert place.board.find("a") == (claim.task,)


def test_after_the_server_has_lost_its_past_no_fence_is_given_again(place: Place) -> None:
    place.board.add("a")
    first = place.board.claim("a")
    assert first is not None
    first.release()
    lost = "UPDATE dibs.history SET name = 'another', server = 'another'"
    place.server.execute(lost, place.database)
    many = [place.other() for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda board: board.acquire(f"door-{id(board)}"), many))
    second = place.board.claim("a")
    assert second is not None
    found = place.server.execute("SELECT line FROM dibs.history WHERE line > 0", place.database)
    assert [(second.fence - 1,)] == found, "one history, however many found out"
    assert second.done().state == "done"
    whole(place)


def test_a_check_finds_rows_that_do_not_agree(place: Place) -> None:
    place.board.add("a")
    claim = place.board.claim()
    assert claim is not None
    whole(place)
    place.server.execute("DELETE FROM dibs.claim", place.database)
    (found,) = place.board.check()
    assert (found.kind, found.name) == ("claim", claim.task.name)
    place.server.execute("DELETE FROM dibs.event WHERE n = 1", place.database)
    assert {finding.kind for finding in place.board.check()} == {"claim", "event"}


def test_texts_that_no_database_holds_come_back(place: Place) -> None:
    board, text = place.board, "nul \0 surrogate \udc80 quote ' \\ \x1b[31m é ☃ \\u0041"
    board.add(text[:20].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))
    board.add("a")
    claim = board.claim("a")
    assert claim is not None
    claim.fail(text)
    assert board.log.of("a")[-1].reason == text
    board.log.note("report", text, by=text)
    last = list(board.log.oldest_first())[-1]
    assert (last.reason, last.by) == (text, text)


def test_a_wait_of_a_claim_ends_soon_after_an_add(place: Place) -> None:
    board = dibs.open(place.where)
    begin = time.monotonic()
    threading.Timer(0.3, place.board.add, ("a",)).start()
    claim = board.wait_for(board.claim, PATIENCE)
    assert claim is not None
    assert time.monotonic() - begin < PATIENCE / 2


def test_a_server_that_is_silent_is_left_and_the_step_is_done_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SILENCE", 1.0)
    board = dibs.open(place.where)
    conn = session_of(board).link.conn
    assert conn is not None
    os.kill(conn.backend, signal.SIGSTOP)  # it has the statement, and will do it later
    try:
        assert board.add("a").name == "a.available"
    finally:
        os.kill(conn.backend, signal.SIGCONT)
    claim = board.claim()
    assert claim is not None
    assert claim.done().state == "done"
    assert [event.verb for event in board.log.of("a")] == ["add", "claim", "done"]
    whole(place)


def test_a_silent_connection_leaves_time_for_another(site: Site, shared_server: Server) -> None:
    with Proxy(shared_server.socket) as proxy:
        board = dibs.open(proxy.url(site.database))
        session_of(board).patience = 4 * SECOND
        proxy.hush()
        assert board.add("a").name == "a.available"
    assert [event.verb for event in site.board.log.of("a")] == ["add"]


def test_a_watch_and_a_scan_wait_for_a_busy_server(site: Site) -> None:
    session = session_of(site.board)
    session.patience = 0
    assert session.row("SELECT 1 FROM pg_sleep(0.7)") == (1,)
    session.patience = SECOND
    assert session.scan("SELECT 1 FROM pg_sleep(1.5)") == [(1,)]


def test_ctrl_c_ends_a_command_that_waits_for_the_server(place: Place, command: Command) -> None:
    import psycopg

    place.board.add("a")
    argv = [sys.executable, "-m", "dibs", "-d", command.where, "claim", "a"]
    with psycopg.connect(place.where) as other:
        other.execute("SELECT 1 FROM dibs.task WHERE eid = 'a' FOR UPDATE")
        with subprocess.Popen(argv, env=command.env, stderr=subprocess.PIPE) as process:
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            end = time.monotonic() + PATIENCE
            while not place.server.execute(waits, place.database):
                assert time.monotonic() < end
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            place.server.execute("SELECT 1", place.database)
            time.sleep(0.2)  # it looks whether the claim was made, which waits too
            other.rollback()
            assert process.wait(PATIENCE) == 130
            assert process.stderr is not None
            assert process.stderr.read() == b""
    end = time.monotonic() + PATIENCE
    while place.board.find("a")[0].state != "available":
        assert time.monotonic() < end, "it stayed claimed without a worker"
        time.sleep(0.05)
