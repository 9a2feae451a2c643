"""Faults planted into the engine: each drill must find those that are its own.

    python -m tests.postgres.mutants                 plant each, and run its drill
    python -m tests.postgres.mutants name            those whose name contains this

A fault is a change to the text of the shipped code, wherever it stands. One whose text is not there
is refused: otherwise a mutant would silently become the shipped code. The exit code is 0 when every
fault was found.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import dibs
from dibs.model.events import Cursor
from dibs.model.settings import Settings
from dibs.postgres import watch
from dibs.shipped import text
from tests import watched
from tests.explorer.mutant import Change, edited, swapped
from tests.postgres.boards import Site, new_site
from tests.postgres.clock_steps import DRILLS, Clocks
from tests.postgres.cluster import Server, server
from tests.postgres.failover import pair
from tests.postgres.losses import Stage
from tests.postgres.many_claims import race
from tests.postgres.outage import Plan as Crashes
from tests.postgres.outage import outage
from tests.postgres.pooler import pooler
from tests.postgres.proxy import Loss, Proxy
from tests.postgres.restores import restored_over_the_board, started_as_a_primary
from tests.postgres.slow import late
from tests.postgres.standby import standby
from tests.postgres.storm import Plan, settings, storm
from tests.postgres.test_failover import (
    test_no_fence_is_given_twice_after_a_tail_was_lost as test_no_fence_is_given_twice,
)
from tests.postgres.test_retries import (
    test_a_claim_that_two_servers_made_for_one_request_is_undone_by_neither as test_a_claim_that_two_servers_made,  # noqa: E501
)
from tests.postgres.test_retries import (
    test_a_claim_without_an_answer_is_given_back_unless_another_answer_gave_it as test_a_claim_without_an_answer,  # noqa: E501
)
from tests.postgres.test_retries import (
    test_a_confirmation_survives_a_crash_of_the_server as test_a_confirmation_survives,
)
from tests.postgres.test_watch_trouble import (
    test_late_commits_and_rollbacks_are_told_apart as test_late_commits_and_rollbacks,
)

Edit = tuple[str, str]
"""A text of `functions.sql`, and its replacement."""
Drill = Callable[["Mutant", Server, Path], Sequence[str]]
"""Runs on a server, and returns what it found wrong."""


class Mutant(NamedTuple):
    """One planted fault, and the drill that must find it."""

    name: str
    breaks: str
    """What goes wrong, in a sentence."""
    drill: Drill
    sql: tuple[Edit, ...] = ()
    code: tuple[Change, ...] = ()
    """Changes to Python code, in this process and what it forks."""
    look: tuple[Edit, ...] = ()
    """Changes to the statement with which a watch looks for events."""

    def plant(self, place: Site) -> Site:
        """Change the functions of a board."""
        functions = text("postgres/functions.sql")
        for old, new in self.sql:
            if old not in functions:
                raise LookupError(f"{self.name}: {old!r} is not there")
            functions = functions.replace(old, new)
        if self.sql:
            place.sql(functions)
        return place


def racing(mutant: Mutant, there: Server, folder: Path) -> Sequence[str]:
    """Eight processes on the same tasks."""
    place = mutant.plant(new_site(there, Settings(max_attempts=1000, retry=())))
    return race(place, place.where, 1000, folder)


def storming(mutant: Mutant, there: Server, folder: Path) -> Sequence[str]:
    """A short storm."""
    place = mutant.plant(new_site(there, settings()))
    return storm(place, folder, Plan(seconds=8, workers=4)).faults


def losing(verb: str, loss: Loss) -> Drill:
    """One verb with each of its requests lost in one way."""

    def drill(mutant: Mutant, there: Server, _: Path) -> Sequence[str]:
        with Proxy(there.socket) as proxy:
            stage = Stage(there, proxy, mutant.plant)
            return [str(trial) for trial in stage.trials(verb, [loss]) if trial.wrong]

    return drill


def slowly(verb: str) -> Drill:
    """An act that reaches the server when another worker has the task."""

    def drill(mutant: Mutant, there: Server, _: Path) -> Sequence[str]:
        with Proxy(there.socket) as proxy:
            wrong = late(mutant.plant(new_site(there, Settings(retry=()))), proxy, verb)
        return [wrong] if wrong else []

    return drill


def pooling(mutant: Mutant, there: Server, folder: Path) -> Sequence[str]:
    """Eight processes behind a pooler."""
    place = mutant.plant(new_site(there, Settings(max_attempts=1000, retry=())))
    with pooler(there) as found:
        return race(place, found.url(place.database), 300, folder)


def watching(mutant: Mutant, there: Server, _: Path) -> Sequence[str]:
    """A watch while changes are committed late, or rolled back."""
    with swapped(watched, "PATIENCE", 5.0):
        return failed(test_late_commits_and_rollbacks, mutant.plant(new_site(there)))


def failing_over(mutant: Mutant, _: Server, __: Path) -> Sequence[str]:
    """A standby is promoted that lacks the newest changes."""
    with Proxy("") as far, pair(synchronous=False, through=far) as found:
        mutant.plant(found.place)
        return failed(test_no_fence_is_given_twice, found, far)


def twins(plant: Callable[[Site], Site] = lambda place: place) -> None:
    """The primary is lost, then the standby that was promoted, before the second one followed it.

    The second has more of the primary than the first. Raises `AssertionError`.
    """
    with Proxy("") as far, pair(synchronous=False, through=far) as found:
        place = plant(found.place)
        board = place._replace(where=found.primary.url(place.database)).board
        board.add("job")
        with standby(found.primary, name="second") as second:
            found.standby.until_it_follows()
            far.stall()
            board.add("second has it")
            second.until_it_follows()
            behind = board.log.end()
            for number in range(9):
                board.add(f"lost-{number}")
            ahead = board.log.end()
            second.until_it_follows()
            found.primary.freeze()
            found.standby.promote()
            first = place._replace(where=found.standby.url(place.database)).board
            cursors = [first.log.end()]
            for number in range(12):  # fewer would not come to the numbers that are lost
                first.add(f"first-{number}")
            wanted = [f"first-{number}" for number in range(12)]
            assert ids_since(first, ahead) == wanted, "the events of a promoted standby"
            cursors.append(first.log.end())
            fences = taken(first)
            cursors.append(first.log.end())
            found.standby.freeze()
            second.promote()
            last = place._replace(where=second.url(place.database)).board
            tail = [f"lost-{number}" for number in range(9)]
            assert [ids_since(last, at) for at in (behind, ahead)] == [tail, []]
            last.add("last")
            assert min(taken(last)) > max(fences), "the fences of the second standby"
            new = ["last", "job", "lock", "lock"]
            assert ids_since(last, ahead) == new
            assert ids_since(last, behind) == [*tail, *new]
            for cursor in cursors:  # what only the first standby had is nothing here
                assert ids_since(last, cursor) == ["second has it", *tail, *new]


def ids_since(board: dibs.Board, cursor: Cursor) -> list[str]:
    """The ids of what happened since."""
    return [event.id for event in board.log.since(cursor)[0]]


def taken(board: dibs.Board) -> tuple[int, int]:
    """The fences of the same task and the same lock on each server."""
    claim = board.claim("job", owner="me")
    assert claim is not None
    return claim.fence, board.acquire("lock", owner="me").fence


def twinning(mutant: Mutant, _: Server, __: Path) -> Sequence[str]:
    """Two standbys of one primary are promoted, one after the other."""
    return failed(twins, mutant.plant)


def restoring(mutant: Mutant, there: Server, _: Path) -> Sequence[str]:
    """A dump is restored over the board."""
    return failed(restored_over_the_board, mutant.plant(new_site(there)))


def copying(mutant: Mutant, _: Server, __: Path) -> Sequence[str]:
    """A base backup is started as a primary."""
    with server(durable=True) as there:
        return failed(started_as_a_primary, mutant.plant(new_site(there)))


def failed(test: Callable[..., None], *given: object) -> Sequence[str]:
    """Why a test fails; empty if it passes."""
    try:
        test(*given)
    except (AssertionError, dibs.DibsError) as error:
        return [f"{test.__name__}: {error}"]
    return []


def confirming(mutant: Mutant, there: Server, folder: Path) -> Sequence[str]:
    """A claim whose answer was lost, which another answer has given away."""
    with Proxy(there.socket) as proxy:
        place = mutant.plant(new_site(there))
        lost = failed(test_a_claim_without_an_answer, place, proxy)
        place = mutant.plant(new_site(there))
        lost = [*lost, *failed(test_a_claim_that_two_servers_made, place, proxy)]
    return [*lost, *failed(test_a_confirmation_survives, mutant.plant(new_site(there)))]


def crashing(mutant: Mutant, _: Server, folder: Path) -> Sequence[str]:
    """A server that crashes under load."""
    with server(durable=True, settings={"synchronous_commit": "off"}) as there:
        place = mutant.plant(new_site(there, Settings(retry=())))
        return outage(place, folder, Crashes(crashes=3, workers=4, gap=0.7))[0]


_MOVES = """  v_line := dibs.floor();
  SELECT * INTO t FROM dibs.task x WHERE x.name = p_src FOR UPDATE;
"""

_LAST = """  outcome := 'taken';
END
$$;"""

_BEATS = "UPDATE dibs.claim c SET beat = v_moment, doubted = 0, ttl"


def setting(mutant: Mutant, there: Server, _: Path) -> Sequence[str]:
    """The server's clock is set, or another server has another clock."""
    faults: list[str] = []
    for drill in DRILLS:
        clocks = Clocks(mutant.plant(new_site(there, Settings(retry=()))))
        faults += failed(drill, clocks)
    return faults


MUTANTS = (
    Mutant(
        "one reading of the clock decides",
        "A clock that is set takes every claim at once.",
        setting,
        code=(
            (
                "dibs.postgres.reaping:patience",
                "_proven(session, found, now) if holder.expired(now) else holder.age(now)",
                "holder.age(now)",
            ),
        ),
    ),
    Mutant(
        "no one notices that the clock was set",
        "A process that saw it trusts the clock as before.",
        setting,
        code=(
            (
                "dibs.postgres.hosts:ServerClock.note",
                "even = max(now.boot + slow, last.boot + slowly)",
                "even = even or now.boot + slow",
            ),
        ),
    ),
    Mutant(
        "each session trusts the clock only since it began",
        "A dashboard, whose acts open the board anew, never takes a dead claim.",
        setting,
        code=(
            (
                "dibs.postgres.sessions:Session._connection",
                "self.clocks.setdefault((self.where, conn.target), hosts.ServerClock())",
                "hosts.ServerClock()",
            ),
        ),
    ),
    Mutant(
        "an old doubt counts",
        "A claim that has beaten since is taken by one reading of the clock.",
        setting,
        sql=((_BEATS, _BEATS.replace("doubted = 0, ", "")),),
        code=(("dibs.postgres.reaping:Suspect.is_doubted", "self.holder.beat <", "0 <"),),
    ),
    Mutant(
        "a beat leaves the doubt of a clock that was ahead",
        "A claim that has beaten since is taken by one reading of the clock, when that time comes.",
        setting,
        sql=((_BEATS, _BEATS.replace("doubted = 0, ", "")),),
    ),
    Mutant(
        "a doubt of a clock that was ahead counts",
        "Processes that only look once do not take a dead claim until that time comes.",
        setting,
        code=(("dibs.postgres.reaping:Suspect.is_doubted", "<= now.fs", ""),),
    ),
    Mutant(
        "a doubt of a clock that was ahead is kept",
        "Processes that only look once do not take a dead claim until that time comes.",
        setting,
        sql=((" OR c.doubted > v_moment", ""),),
    ),
    Mutant(
        "nothing is doubted",
        "Processes that only look once never take a dead claim.",
        setting,
        sql=(
            ("UPDATE dibs.claim c SET doubted = v_moment", "UPDATE dibs.claim c SET doubted = 0"),
        ),
    ),
    Mutant(
        "a promoted server keeps the beats of another clock",
        "A shell worker's beat is refused after a failover.",
        setting,
        sql=(("  UPDATE dibs.claim c SET beat = v_moment, doubted = 0;\n", ""),),
    ),
    Mutant(
        "a move compares only the id",
        "A late holder ends the claim of another.",
        storming,
        sql=((_MOVES, _MOVES.replace("x.name = p_src", "x.eid = p_eid")),),
    ),
    Mutant(
        "a beat compares only the id",
        "A late holder keeps the claim of another alive, and believes it is its own.",
        slowly("beat"),
        sql=(
            (
                """ELSE v_moment END
    WHERE c.eid = p_eid AND c.name = p_name""",
                """ELSE v_moment END
    WHERE c.eid = p_eid""",
            ),
        ),
    ),
    Mutant(
        "a note compares only the id",
        "A late holder writes on the claim of another.",
        storming,
        sql=(
            (
                """ELSE dibs.clock() END
    WHERE c.eid = p_eid AND c.name = p_name""",
                """ELSE dibs.clock() END
    WHERE c.eid = p_eid""",
            ),
        ),
    ),
    Mutant(
        "a claim locks nothing",
        "Two workers get the head of the queue.",
        racing,
        sql=(
            (
                "ORDER BY x.priority DESC, x.eid LIMIT 1 FOR UPDATE SKIP LOCKED",
                "ORDER BY x.priority DESC, x.eid LIMIT 1",
            ),
        ),
    ),
    Mutant(
        "a claim row stays",
        "What was done or released still has a holder.",
        storming,
        sql=(("DELETE FROM dibs.claim c WHERE c.eid = t.eid;", ""),),
    ),
    Mutant(
        "a number is skipped",
        "The events of an id have a gap.",
        storming,
        sql=(
            (
                "events = x.events + 1 WHERE x.eid = t.eid;\n  IF p_result",
                "events = x.events + 2 WHERE x.eid = t.eid;\n  IF p_result",
            ),
        ),
    ),
    Mutant(
        "a repeated claim is not recognised",
        "A claim whose answer was lost is made again, on another task.",
        losing("board.claim", Loss.ANSWER),
        sql=(("IF p_again THEN", "IF false THEN"),),
    ),
    Mutant(
        "a nonce claims twice",
        "A claim that comes after its client has asked again claims a second task, for no one.",
        losing("board.claim", Loss.LATE),
        sql=((_LAST, _LAST.replace("END\n$$;", "END\n$$;\nDROP INDEX dibs.task_claim;")),),
    ),
    Mutant(
        "a repeated move is not recognised",
        "A worker whose answer was lost hears that it lost its claim, which it has ended.",
        losing("claim.release", Loss.ANSWER),
        sql=(("RETURN CASE WHEN FOUND THEN 'moved' ELSE 'gone' END", "RETURN 'gone'"),),
    ),
    Mutant(
        "a watch forgets what was under way",
        "An event that was not committed at the last look is never reported.",
        watching,
        look=(("e.xid = ANY (ARRAY(", "false AND e.xid = ANY (ARRAY("),),
    ),
    Mutant(
        "no new history",
        "After a failover that lost its tail a fence is given again.",
        failing_over,
        sql=(("  RETURN dibs.turn();", "  RETURN h.line;"),),
    ),
    Mutant(
        "a restore over the board is not seen",
        "A dump that is restored over the board gives fences again.",
        restoring,
        sql=(
            (" || ' '\n    || 'dibs.history'::regclass::oid::text", ""),
            ("d.oid, 'dibs.history'::regclass::oid,", "d.oid,"),
        ),
    ),
    Mutant(
        "a base backup is not seen",
        "One that is started as a primary gives fences again.",
        copying,
        sql=(("'backup_label.old'", "'no_such_file'"),),
    ),
    Mutant(
        "a history is a counter",
        "Two standbys of one primary give the same fences.",
        twinning,
        sql=(
            (
                "CASE WHEN v_moment / 1000 > v_high THEN v_moment / 1000",
                "CASE WHEN true THEN v_high",
            ),
        ),
    ),
    Mutant(
        "an event has no history",
        "Readers skip an event for each transaction that a failover lost.",
        twinning,
        sql=(
            (
                "VALUES (p_eid, v_n, v_line, v_moment, 'add'",
                "VALUES (p_eid, v_n, (SELECT min(line) FROM dibs.history), v_moment, 'add'",
            ),
        ),
    ),
    Mutant(
        "statements are prepared behind a pooler",
        "Another client's connection does not know them.",
        pooling,
        code=(
            (
                "dibs.postgres.sessions:Session._connection",
                "conn.prepares = not pooled",
                "conn.prepares = True",
            ),
        ),
    ),
    Mutant(
        "a change is as durable as the session wants",
        "An acknowledged change is gone after a crash.",
        crashing,
        sql=(
            (
                "IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN",
                "IF false THEN",
            ),
        ),
    ),
    Mutant(
        "an undo does not compare the beat",
        "A claim that another server gave away is released under its holder.",
        confirming,
        code=(
            (
                "dibs.postgres.claims:PostgresClaim.release_unconfirmed",
                "reason, beat=rows[0][0])",
                "reason)",
            ),
        ),
    ),
    Mutant(
        "a repeated claim of another server is not confirmed",
        "The server that finds it releases it under its holder, when its own client has gone.",
        confirming,
        sql=(
            (
                "      UPDATE dibs.claim c SET beat = greatest(dibs.clock(), c.beat + 1)\n"
                "        WHERE c.eid = v_eid AND c.name = taken;\n",
                "",
            ),
        ),
    ),
    Mutant(
        "a confirmation is as short-lived as a beat",
        "The server crashes, and the claim looks as it was made: it is released under its holder.",
        confirming,
        code=(
            (
                "dibs.postgres.claims:PostgresClaim.confirm",
                "self._beat(_CONFIRM, ttl, metadata)",
                'self._beat("SELECT dibs.beat(%s, %s, %s, %s, NULL)", ttl, metadata)',
            ),
        ),
    ),
)


def found(mutant: Mutant, there: Server) -> Sequence[str]:
    """What its drill finds."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stack.enter_context(edited(mutant.code))
        for old, new in mutant.look:
            assert old in watch._LOOK, old
            stack.enter_context(swapped(watch, "_LOOK", watch._LOOK.replace(old, new)))
        return mutant.drill(mutant, there, Path(folder))


def main(argv: Sequence[str]) -> int:
    missed = 0
    with server() as there:
        for mutant in MUTANTS:
            if argv and argv[0] not in mutant.name:
                continue
            begun = time.monotonic()
            faults = found(mutant, there)
            missed += not faults
            shown = f"found {len(faults)} times: {faults[0][:100]}" if faults else "NOT FOUND"
            print(f"{mutant.name} ({time.monotonic() - begun:.0f} s): {shown}", flush=True)
    print(f"{missed} of {len(MUTANTS)} mutants were not found")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
