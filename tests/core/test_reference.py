"""A stateful machine compares the board with a plain in-memory reference."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

import dibs
from dibs.names import AVAILABLE, CLAIMED, FREE, HELD, escape
from tests.core.conftest import MEMORY
from tests.core.reference import AgingDisk, Entry, Kept, Reference
from tests.core.tools import Place, opened

TTL = 120
LIMIT = 3
IDENTS = ["a", "b", "v1.2", "é/..", "x\n"]
LOCKS = ["door", "gate"]
OFFERED = ["shell-1", "shell-2"]
OWNERS = ["me", "you", "agent 7/é"]


class BoardMachine(RuleBasedStateMachine):
    """Every verb of one board, in any order."""

    claims: Bundle[Kept] = Bundle("claims")

    @initialize()
    def begin(self) -> None:
        fast = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.scratch = Path(tempfile.mkdtemp(prefix="dibs-", dir=fast))
        self.place = Place(self.scratch, max_attempts=LIMIT, ttl=TTL)
        self.ref = Reference()
        self.serial = 0
        self.board = self.another()

    def another(self) -> dibs.Board:
        return opened(AgingDisk(self.place.path, self.place.world))

    def teardown(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def payload(self) -> bytes:
        self.serial += 1
        return f"payload {self.serial}".encode()

    def took(self, claim: dibs.Claim, entry: Entry, owner: str) -> Kept:
        """Note that a claim was made of that entry."""
        assert claim.fence == entry.fence + 1
        self.ref.grant(entry, claim.fence)
        entry.state = HELD if entry.state in (FREE, HELD) else CLAIMED
        entry.fence, entry.claim, entry.owner = claim.fence, claim.task.claim, owner
        entry.beaten = self.ref.now
        return Kept(claim, entry, self.ref.now)

    def owns(self, kept: Kept) -> bool:
        return kept.entry in self.ref.entries and kept.entry.claim == kept.claim.task.claim

    def freed(self, entry: Entry, state: str, claim: str = "") -> None:
        entry.state, entry.claim, entry.owner = state, claim, ""

    @rule(ident=st.sampled_from(IDENTS), priority=st.integers(0, 9))
    def add(self, ident: str, priority: int) -> None:
        payload = self.payload()
        if ident in self.ref.known:
            with pytest.raises(dibs.Exists):
                self.board.add(ident, payload, priority=priority)
            return
        task = self.board.add(ident, payload, priority=priority)
        assert task.fence >= max(self.ref.granted.get(ident, {0}))
        self.ref.known.add(ident)
        self.ref.entries.append(Entry(ident, AVAILABLE, payload, task.fence, 0, priority))

    @rule(ident=st.sampled_from(OFFERED))
    def offer_by_shell(self, ident: str) -> None:
        if self.ref.of(ident) or ident in self.ref.granted:
            return
        entry = Entry(ident, AVAILABLE, self.payload())
        (self.place.path / f"{ident}.available").write_bytes(entry.payload)
        self.ref.entries.append(entry)

    @rule(target=claims, owner=st.sampled_from(OWNERS), fresh=st.booleans())
    def claim(self, owner: str, fresh: bool) -> Kept:
        waiting = self.ref.waiting()
        board = self.another() if fresh else self.board
        claim = board.claim(owner=owner)
        if not waiting:
            assert claim is None
            return multiple()  # type: ignore[return-value]
        assert claim is not None
        entry = next(e for e in waiting if e.id == claim.id)
        if fresh:  # a process that has seen nothing yet takes the most urgent
            assert entry.priority == waiting[0].priority
        assert claim.read() == entry.payload
        return self.took(claim, entry, owner)

    @rule(target=claims, ident=st.sampled_from(IDENTS + OFFERED), owner=st.sampled_from(OWNERS))
    def claim_one(self, ident: str, owner: str) -> Kept:
        present = self.ref.present(ident)
        if len(present) != 1 or present[0].live:
            wrong = dibs.UnknownId if not present else dibs.Held
            with pytest.raises(dibs.Exists if len(present) > 1 else wrong) as caught:
                self.board.claim(ident, owner=owner)
            if isinstance(caught.value, dibs.Held):
                assert caught.value.owner == present[0].owner
            return multiple()  # type: ignore[return-value]
        claim = self.board.claim(ident, owner=owner)
        assert claim is not None
        return self.took(claim, present[0], owner)

    @rule(target=claims, ident=st.sampled_from(LOCKS), owner=st.sampled_from(OWNERS))
    def acquire(self, ident: str, owner: str) -> Kept:
        found = self.ref.of(ident)
        if found and found[0].live:
            with pytest.raises(dibs.Held) as caught:
                self.board.acquire(ident, owner=owner)
            assert caught.value.owner == found[0].owner
            return multiple()  # type: ignore[return-value]
        lease = self.board.acquire(ident, owner=owner)
        if not found:
            found = [Entry(ident, FREE, b"")]
            self.ref.entries += found
        return self.took(lease, found[0], owner)

    @rule(kept=claims, attached=st.booleans())
    def beat(self, kept: Kept, attached: bool) -> None:
        late = self.ref.now - kept.good > 0.8 * TTL and not attached
        claim = self.board.attach(kept.claim.task.name) if attached else kept.claim
        here = self.owns(kept) and kept.entry.live
        if late or not here:
            with pytest.raises(dibs.Uncertain if here else dibs.Lost):
                claim.beat()
            return
        claim.beat()
        kept.entry.beaten = self.ref.now
        kept.good = kept.good if attached else self.ref.now

    @rule(kept=claims, verb=st.sampled_from(["done", "fail", "release"]))
    def end(self, kept: Kept, verb: str) -> None:
        entry = kept.entry
        act: Callable[[], dibs.Task] = getattr(kept.claim, verb)
        if kept.claim.task.state == HELD and verb != "release":
            with pytest.raises(dibs.BadName):
                act()
            return
        if kept.claim.task.state == HELD and self.ref.now - kept.good > 0.8 * TTL:
            here = self.owns(kept) and entry.live  # but an ended lease is not one's own to free
            with pytest.raises(dibs.Uncertain if here else dibs.Lost):
                act()
            return
        if not self.owns(kept):
            with pytest.raises(dibs.Lost):
                act()
            return
        if not entry.live:  # a commit that is repeated
            if verb == "done" and entry.state == "done":
                assert act().state == "done"
            return
        task = act()
        if verb == "done":
            self.freed(entry, "done", entry.claim)
        elif verb == "release":
            self.freed(entry, FREE if entry.state == HELD else AVAILABLE)
        else:
            self.attempt(entry)
        assert task.state == entry.state

    def attempt(self, entry: Entry) -> None:
        """One failure or expiry more."""
        if entry.state == HELD:
            self.freed(entry, FREE)
            return
        entry.attempts += 1
        parked = entry.attempts >= LIMIT
        self.freed(entry, "failed" if parked else AVAILABLE, entry.claim if parked else "")

    @rule(target=claims, kept=claims)
    def resume(self, kept: Kept) -> Kept:
        entry, owner = kept.entry, kept.entry.owner
        if not self.owns(kept) or not entry.live:
            with pytest.raises(dibs.Changed):
                self.board.resume(kept.claim.id, owner="me", name=kept.claim.task.name)
            return multiple()  # type: ignore[return-value]
        claim = self.board.resume(kept.claim.id, owner=owner, name=kept.claim.task.name)
        return self.took(claim, entry, owner)

    @rule(kept=claims)
    def force_release(self, kept: Kept) -> None:
        entry = kept.entry
        if not self.owns(kept) or not entry.live:
            with pytest.raises(dibs.Changed) as caught:
                self.board.force_release(kept.claim.task.name, "stuck")
            now = sorted(task.state for task in caught.value.now)
            assert now == sorted(e.state for e in self.ref.of(kept.claim.id))
            return
        self.board.force_release(kept.claim.task.name, "stuck")
        self.freed(entry, FREE if entry.state == HELD else AVAILABLE)

    @rule(kept=claims)
    def reap_exactly(self, kept: Kept) -> None:
        """Nobody is silent for too long: whoever was has been reaped when the time passed."""
        with pytest.raises(dibs.Refused) as caught:
            self.board.reap_claim(kept.claim.task.name, "looks dead")
        there = self.owns(kept) and kept.entry.live
        assert isinstance(caught.value, dibs.Changed) is not there

    def pick(self, data: st.DataObject, *states: str) -> tuple[Entry, str] | None:
        """One entry in such a state, with its exact name as the board shows it."""
        shown = {
            (t.id, t.state, t.fence, t.attempts, t.priority, t.claim): t.name
            for t in self.board.snapshot().tasks.values()
        }
        found = [e for e in self.ref.entries if e.state in states]
        if not found:
            return None
        entry = data.draw(st.sampled_from(found))
        return entry, shown[entry.face()]

    @rule(data=st.data())
    def park(self, data: st.DataObject) -> None:
        picked = self.pick(data, AVAILABLE, CLAIMED)
        if picked is not None:
            task = self.board.park(picked[1], "flaky", by="root")
            self.freed(picked[0], "failed", task.claim)

    @rule(data=st.data(), keep=st.booleans())
    def requeue(self, data: st.DataObject, keep: bool) -> None:
        picked = self.pick(data, "failed", "done")
        if picked is None:
            return
        entry, name = picked
        if self.ref.present(entry.id):
            with pytest.raises(dibs.Changed):
                self.board.requeue(name, keep_attempts=keep)
            return
        self.board.requeue(name, keep_attempts=keep)
        self.freed(entry, AVAILABLE)
        entry.attempts = entry.attempts if keep else 0

    @rule(data=st.data(), priority=st.integers(0, 9))
    def reprioritise(self, data: st.DataObject, priority: int) -> None:
        picked = self.pick(data, AVAILABLE)
        if picked is not None:
            self.board.reprioritise(picked[1], priority)
            picked[0].priority = priority

    @rule()
    def purge(self) -> None:
        done = [e for e in self.ref.entries if e.state == "done"]
        assert self.board.purge() == len(done)
        for entry in done:
            self.ref.entries.remove(entry)

    @rule(ident=st.sampled_from(IDENTS))
    def forget(self, ident: str) -> None:
        if ident not in self.ref.known or self.ref.of(ident):
            if ident in self.ref.known:
                with pytest.raises(dibs.Changed):
                    self.board.forget(ident)
            return
        self.board.forget(ident)
        self.ref.known.discard(ident)

    @rule(data=st.data())
    def double_by_hand(self, data: st.DataObject) -> None:
        picked = self.pick(data, AVAILABLE)
        if picked is None:
            return
        payload = self.payload()
        entry = Entry(picked[0].id, AVAILABLE, payload, fence=1000 * self.serial, priority=3)
        eid = escape(entry.id)
        (self.place.path / f"{eid}.f{entry.fence}p3.available").write_bytes(payload)
        self.wait(2)  # a worker that has just listed the board does so again
        self.ref.entries.append(entry)
        self.ref.doubled.add(entry.id)

    @rule(data=st.data())
    def remove_by_hand(self, data: st.DataObject) -> None:
        doubles = [e for e in self.ref.entries if e.id in self.ref.doubled]
        picked = self.pick(data, AVAILABLE) if doubles else None
        if picked is not None and len(self.ref.present(picked[0].id)) > 1:
            (self.place.path / picked[1]).unlink()
            self.ref.entries.remove(picked[0])

    @rule(name=st.sampled_from(["notes.txt", "x.held", "y.f1.held", "done/odd", ".hidden"]))
    def put_a_stranger(self, name: str) -> None:
        if name.startswith("done/") and not (self.place.path / "done").is_dir():
            return
        (self.place.path / name).write_bytes(b"stranger")
        self.ref.strangers.add(name)

    @precondition(lambda self: self.ref.entries)
    @rule(seconds=st.sampled_from([50, 130]), exactly=st.booleans())
    def pass_time(self, seconds: int, exactly: bool) -> None:
        self.wait(seconds, exactly=exactly)

    def wait(self, seconds: int, *, exactly: bool = False) -> None:
        """Let time pass, and whoever was silent for too long be reaped, at once or one by one."""
        self.board.snapshot()
        self.place.world.advance(seconds)
        self.ref.now += seconds
        stale = [e for e in self.ref.entries if e.live and self.ref.now - e.beaten > TTL]
        snapshot = self.board.snapshot()
        shown = [t for t in snapshot.tasks.values() if snapshot.stale(t.name)]
        assert sorted(t.claim for t in shown) == sorted(e.claim for e in stale)
        given = tuple(self.board.reap_claim(t.name) for t in shown) if exactly else ()
        reaped = self.board.reap()
        assert (len(given + reaped.given_back), reaped.refused) == (len(stale), ())
        for entry in stale:
            self.attempt(entry)

    @invariant()
    def the_board_is_what_the_reference_says(self) -> None:
        snapshot = self.board.snapshot()
        shown = sorted(
            (t.id, t.state, t.fence, t.attempts, t.priority, t.claim, self.board.payload(t))
            for t in snapshot.tasks.values()
        )
        assert shown == sorted((*e.face(), e.payload) for e in self.ref.entries)
        assert snapshot.strangers == len(self.ref.strangers)
        for ident in {e.id for e in self.ref.entries}:
            assert len(self.board.find(ident)) == len(self.ref.of(ident))

    @invariant()
    def nothing_is_half_done(self) -> None:
        live = sorted(e.claim for e in self.ref.entries if e.live)
        records = (self.place.path / ".dibs/records").iterdir()
        assert sorted(path.name.rpartition(".")[2] for path in records) == live
        assert list((self.place.path / ".dibs/new").iterdir()) == []


TestTheBoard = BoardMachine.TestCase
TestTheBoard.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
