"""The server's clock is set while claims are held: nobody loses one that beats."""

from __future__ import annotations

from collections.abc import Callable

import dibs
from dibs.host import boottime
from dibs.postgres.engine import PostgresBoard
from dibs.postgres.hosts import ServerClock, ServerHost
from dibs.postgres.sessions import Session
from tests.postgres.boards import Site
from tests.postgres.server import MOVED

Process = dict[tuple[str, ServerHost | None], ServerClock]
"""What the sessions of one process have seen of the clocks of servers."""
TTL = 120.0
STEP = 600.0


class Clocks:
    """The clocks of a server and of all hosts; they move together, or that of the server alone."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._by = self._set = 0
        site.sql(MOVED)
        site.sql(f"ALTER DATABASE {site.database} SET search_path = public, pg_catalog")
        self.board = self.other()

    def boottime(self) -> int:
        return boottime() + self._by

    def other(self, *, read_only: bool = False, process: Process | None = None) -> PostgresBoard:
        """The board as a process sees it that begins now, or as another session of a process."""
        session = Session(self._site.where, dibs.this_host(), read_only=read_only)
        session.clocks = {} if process is None else process
        session.boottime = self.boottime
        session.sleep = self.advance
        session.connect()
        return PostgresBoard(session)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._by += int(seconds * 1e9)
        self._move()

    def step(self, seconds: float = STEP) -> None:
        """Set the server's clock forward."""
        self._set += int(seconds * 1e9)
        self._move()

    def fail_over(self, seconds: float = STEP) -> None:
        """Another server has the board, whose clock is ahead."""
        self._site.sql("UPDATE dibs.history SET name = 'another', server = 'another'")
        self.step(seconds)

    def held(self) -> dibs.Claim:
        """A claim on a new task."""
        self.board.add("a")
        claim = self.board.claim("a", owner="lives", ttl=TTL)
        assert claim is not None
        return claim

    def doubted(self) -> bool:
        """Whether it was noted of the claim that its lease is over without a proof."""
        ((found,),) = self._site.sql("SELECT doubted > beat FROM dibs.claim")
        return bool(found)

    def _move(self) -> None:
        self._site.sql("UPDATE public.moved SET by_ns = %s", self._by + self._set)


def verdict(board: dibs.Board) -> str:
    (task,) = board.find("a")
    return board.evidence(task).verdict.name


def clock_line(board: dibs.Board) -> str:
    """What the evidence says of the clock, behind why it matters."""
    (task,) = board.find("a")
    (found,) = [proof.text for proof in board.evidence(task).proofs if proof.kind == "clock"]
    return found.partition("lease: ")[2]


def no_one_takes(board: dibs.Board) -> None:
    """Nothing that takes over what is stale does so now."""
    assert board.claim(owner="thief") is None, "a worker took it"
    assert board.reap().tasks == (), "a janitor took it"
    try:
        board.claim("a", owner="thief")
    except dibs.Held:
        return
    raise AssertionError("it was claimed by its id")


def a_step_takes_no_claim(clocks: Clocks) -> None:
    """Processes that watched the clock, and one that begins after it was set."""
    watched = clocks.other()
    clocks.advance(2 * TTL)  # so it has proofs of what was before
    claim = clocks.held()
    clocks.advance(30)
    claim.beat()
    no_one_takes(watched)
    clocks.step()
    for board in (watched, clocks.other()):
        assert verdict(board) == "UNKNOWN"
        no_one_takes(board)
    clocks.advance(30)
    claim.beat()  # as it does every third of its ttl
    for board in (watched, clocks.other()):
        assert verdict(board) == "ALIVE"
        no_one_takes(board)
    clocks.step()  # what was doubted before the beat is no proof after it
    no_one_takes(clocks.other())
    claim.beat()
    assert claim.done().state == "done"


def a_promoted_standby_takes_no_claim(clocks: Clocks) -> None:
    """The beats have the times of another clock."""
    claim = clocks.held()
    clocks.advance(30)
    clocks.fail_over()
    watched = clocks.other()
    no_one_takes(watched)
    clocks.board.attach(claim.name).beat()
    clocks.advance(TTL - 30)
    no_one_takes(watched)
    clocks.advance(31)
    assert watched.reap().tasks


def an_attached_holder_survives_a_failover(clocks: Clocks) -> None:
    """A shell worker reads the age of its claim, also before anyone has changed anything."""
    claim = clocks.held()
    clocks.advance(30)
    clocks.fail_over()
    clocks.other().attach(claim.name).beat()


def a_dead_claim_is_taken_after_a_step(clocks: Clocks) -> None:
    """By a process that saw the step, after a ttl."""
    watched = clocks.other()
    clocks.held()
    clocks.step()
    no_one_takes(watched)
    clocks.advance(TTL - 1)
    no_one_takes(watched)
    clocks.advance(2)
    assert watched.claim(owner="next") is not None


def processes_that_only_look_once_take_a_dead_claim(clocks: Clocks) -> None:
    """The first doubts, and one that comes a ttl later takes it."""
    clocks.held()
    clocks.advance(TTL + 1)
    no_one_takes(clocks.other())
    assert verdict(clocks.other(read_only=True)) == "UNKNOWN"
    clocks.advance(TTL - 1)
    no_one_takes(clocks.other())
    clocks.advance(2)
    assert verdict(clocks.other(read_only=True)) == "EXPIRED"
    assert clocks.other().claim(owner="next") is not None


def a_doubt_of_a_clock_that_was_ahead_keeps_no_dead_claim(clocks: Clocks) -> None:
    """The holder died while the clock was ahead."""
    clocks.held()
    clocks.step()
    no_one_takes(clocks.other())
    clocks.step(-STEP)
    taken_by_processes_that_look_once(clocks)


def a_doubt_of_a_clock_that_was_ahead_outlives_no_beat(clocks: Clocks) -> None:
    """The holder beats once more, after the clock is right again."""
    claim = clocks.held()
    clocks.step()
    no_one_takes(clocks.other())
    clocks.step(-STEP)
    claim.beat()
    taken_by_processes_that_look_once(clocks)


def a_standby_whose_clock_is_behind_keeps_no_dead_claim(clocks: Clocks) -> None:
    """The doubt is that of another clock."""
    clocks.held()
    clocks.step()
    no_one_takes(clocks.other())
    clocks.fail_over(-STEP)
    clocks.board.acquire("lock", ttl=4 * STEP)
    taken_by_processes_that_look_once(clocks)


def taken_by_processes_that_look_once(clocks: Clocks) -> None:
    """The first doubts, and one that comes a ttl later takes it."""
    clocks.advance(TTL + 1)
    no_one_takes(clocks.other())
    clocks.advance(TTL + 1)
    assert clocks.other().claim("a", owner="next") is not None


def a_doubt_before_a_beat_proves_nothing(clocks: Clocks) -> None:
    """Also where that clock was ahead: the time of the doubt comes when the holder has beaten."""
    claim = clocks.held()
    clocks.step()
    no_one_takes(clocks.other())
    clocks.step(-STEP)
    for _ in range(12):
        claim.beat()
        clocks.advance(STEP / 12 - 0.1)
    claim.beat()
    clocks.advance(2)
    clocks.step(TTL + 5)
    no_one_takes(clocks.other())
    claim.beat()


def a_dashboard_alone_takes_a_dead_claim(clocks: Clocks) -> None:
    """Each of its acts opens the board anew; what its watch saw of the clock counts for them."""
    claim = clocks.held()
    process: Process = {}
    clocks.advance(TTL + 1)
    watch = clocks.other(read_only=True, process=process)
    for _ in range(4):
        assert verdict(clocks.other(read_only=True, process=process)) == "UNKNOWN"
        clocks.advance(TTL / 4)
        assert len(watch.pauses()) == 0  # any look reads the clock
    clocks.advance(1)
    assert not clocks.doubted(), "a session that is read-only wrote"
    assert verdict(clocks.other(process=process)) == "EXPIRED"
    assert verdict(clocks.other()) == "UNKNOWN", "another process saw nothing of the clock"
    assert clocks.other(process=process).reap_claim(claim.name).state == "available"


def a_step_counts_for_every_session_of_a_process(clocks: Clocks) -> None:
    """Whichever of them reads the clock first after it was set, or last before it."""
    process: Process = {}
    watch = clocks.other(process=process)
    clocks.advance(2 * TTL)
    clocks.held()
    clocks.advance(TTL - 10)
    late = watch._session.now()  # it is brought by a thread that is late
    clocks.step()
    for board in (clocks.other(process=process), watch):
        assert verdict(board) == "UNKNOWN"
        no_one_takes(board)
    watch._session.link.clock.note(late, 0)
    assert verdict(watch) == "UNKNOWN"
    no_one_takes(watch)


def whoever_judges_notes_the_doubt(clocks: Clocks) -> None:
    """So a later look can prove it, also that of another process; and it says when."""
    claim = clocks.held()
    clocks.advance(TTL + 1)
    board = clocks.other()
    assert clock_line(board) == "it was observed for 0 s since the last beat; EXPIRED in 120 s"
    assert clocks.doubted()
    clocks.advance(45)
    assert clock_line(board).startswith("it was observed for 45 s")
    clocks.advance(TTL - 44)
    later = clocks.other()
    assert verdict(later) == "EXPIRED"
    assert later.reap_claim(claim.name).state == "available"


def a_janitor_from_cron_says_what_it_left(clocks: Clocks) -> None:
    """And when the same command does it."""
    clocks.held()
    assert clocks.other().reap().unproven == 0
    clocks.advance(TTL + 1)
    left = clocks.other().reap()
    assert left.unproven == 1
    assert left.tasks == ()
    assert left.retry is not None
    clocks.advance(left.retry / 2)
    again = clocks.other().reap()
    assert again.unproven == 1
    assert again.retry is not None
    assert again.retry < left.retry
    clocks.advance(again.retry + 1)
    done = clocks.other().reap()
    assert len(done.tasks) == 1
    assert done.retry is None
    assert done.unproven == 0


Drill = Callable[[Clocks], None]
DRILLS: tuple[Drill, ...] = (
    a_step_takes_no_claim,
    a_promoted_standby_takes_no_claim,
    an_attached_holder_survives_a_failover,
    a_dead_claim_is_taken_after_a_step,
    processes_that_only_look_once_take_a_dead_claim,
    a_doubt_of_a_clock_that_was_ahead_keeps_no_dead_claim,
    a_doubt_of_a_clock_that_was_ahead_outlives_no_beat,
    a_standby_whose_clock_is_behind_keeps_no_dead_claim,
    a_doubt_before_a_beat_proves_nothing,
    a_dashboard_alone_takes_a_dead_claim,
    a_step_counts_for_every_session_of_a_process,
    whoever_judges_notes_the_doubt,
    a_janitor_from_cron_says_what_it_left,
)
