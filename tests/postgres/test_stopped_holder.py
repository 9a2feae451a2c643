"""A holder that is stopped past its lease finds out that another has its task."""

from __future__ import annotations

import signal
from contextlib import suppress

import dibs
from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.child import Child

LATE = {
    "beat": "claim.beat()",
    "note": "claim.note('still here')",
    "verify": "claim.verify()",
    "done": "claim.done(b'late')",
    "fail": "claim.fail('late')",
    "release": "claim.release()",
    "ask": "claim.ask('late?')",
}


def test_every_act_of_a_stopped_holder_is_refused_after_a_takeover(site: Site) -> None:
    board = site.board
    board.add("build", b"what to do")
    with Child(site.where) as child:
        assert child.ask("(claim := board.claim(owner='first', ttl=1)) and claim.fence") == 1
        child.send(signal.SIGSTOP)
        taken = board.wait_for(lambda: board.claim(owner="second", ttl=60), PATIENCE)
        child.send(signal.SIGCONT)
        assert taken is not None
        assert taken.fence == 2
        assert {verb: child.ask(code) for verb, code in LATE.items()} == dict.fromkeys(LATE, "Lost")
    holder = board.holder(taken.task)
    assert holder is not None
    assert (holder.owner, holder.note) == ("second", "")
    taken.verify()
    assert taken.done(b"mine").fence == 2
    (task,) = board.find("build")
    assert board.result(task) == b"mine"
    moved = [event.verb for event in board.log.of("build") if event.dst]
    assert [verb for verb in moved if verb != "due"] == ["add", "claim", "reap", "claim", "done"]
    assert site.contradictions() == []


def test_an_act_under_way_while_the_holder_is_stopped_is_decided_by_the_board(site: Site) -> None:
    """The process stops with its request on the way; it never ends a newer claim."""
    board = site.board
    for number in range(8):
        ident = f"task-{number}"
        board.add(ident)
        with Child(site.where) as child:
            child.ask(f"(claim := board.claim('{ident}', owner='first', ttl=1)) and 0")
            child.begin("claim.done() and 'done'")
            child.send(signal.SIGSTOP)
            (task,) = board.find(ident)
            if task.state == "claimed":
                with suppress(dibs.Changed):
                    board.force_release(task.name, "stopped")
            child.send(signal.SIGCONT)
            said = child.answer()
        (now,) = board.find(ident)
        assert (now.state, said) in (("done", "done"), ("available", "Lost")), (now, said)


def test_a_lock_is_not_held_twice_over_a_stop(site: Site) -> None:
    board = site.board
    with Child(site.where) as child:
        child.ask("(lock := board.acquire('door', owner='first', ttl=1)) and 0")
        child.send(signal.SIGSTOP)
        lock = board.acquire("door", owner="second", ttl=60, wait=PATIENCE)
        child.send(signal.SIGCONT)
        refused = [child.ask(f"lock.{verb}()") for verb in ("verify", "beat", "release")]
    assert refused == ["Lost"] * 3
    assert lock.fence == 2
    assert board.status("door").owner == "second"
    lock.release()
