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
from dibs.model.settings import Settings
from dibs.postgres import watch
from dibs.shipped import text
from tests import watched
from tests.explorer.mutant import Change, edited, swapped
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server, server
from tests.postgres.failover import pair
from tests.postgres.losses import Stage
from tests.postgres.many_claims import race
from tests.postgres.outage import Plan as Crashes
from tests.postgres.outage import outage
from tests.postgres.pooler import pooler
from tests.postgres.proxy import Loss, Proxy
from tests.postgres.slow import late
from tests.postgres.storm import Plan, settings, storm
from tests.postgres.test_failover import (
    test_no_fence_is_given_twice_after_a_tail_was_lost as test_no_fence_is_given_twice,
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


def failed(test: Callable[..., None], *given: object) -> Sequence[str]:
    """Why a test fails; empty if it passes."""
    try:
        test(*given)
    except (AssertionError, dibs.DibsError) as error:
        return [f"{test.__name__}: {error}"]
    return []


def crashing(mutant: Mutant, _: Server, folder: Path) -> Sequence[str]:
    """A server that crashes under load."""
    with server(durable=True, settings={"synchronous_commit": "off"}) as there:
        place = mutant.plant(new_site(there, Settings(retry=())))
        return outage(place, folder, Crashes(crashes=3, workers=4, gap=0.7))[0]


_MOVES = """  PERFORM dibs.durable();
  SELECT * INTO t FROM dibs.task x WHERE x.name = p_src FOR UPDATE;
"""

_LAST = """  outcome := 'taken';
END
$$;"""

MUTANTS = (
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
        "no epoch",
        "After a failover that lost its tail a fence is given again.",
        failing_over,
        sql=(("PERFORM dibs.turn();", "NULL;"),),
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
