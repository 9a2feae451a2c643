"""A stateful machine that compares a board of any engine with a plain list in memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
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
from dibs.model.task import ASKED, AVAILABLE, CLAIMED, FREE, HELD, LATER
from tests.contract.place import Place, places_of
from tests.contract.reference import Entry, Kept, Reference
from tests.core.conftest import fast

TTL = 120
LIMIT = 3
DELAYS = (75.0, 50_000.0)
"""Delays that no sum of the rules' waits comes near, so that their tenth more or less is hidden."""
IDENTS = ["a", "b", "v1.2", "é/..", "x\n"]
LOCKS = ["door", "gate"]
OFFERED = ["shell-1", "shell-2"]
"""Ids that an engine's own rules may add."""
OWNERS = ["me", "you", "agent 7/é"]


class BoardMachine(RuleBasedStateMachine):
    """Runs every verb of a board in any order and compares it with the reference."""

    claims: Bundle[Kept] = Bundle("claims")

    engine: str
    place: Place

    @initialize()
    def begin(self) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="dibs-", dir=fast()))
        self.places = ExitStack()
        places = self.places.enter_context(places_of(self.engine, self.scratch))
        self.place = places(max_attempts=LIMIT, ttl=TTL, retry=DELAYS)
        self.ref = Reference()
        self.serial = 0
        self.board = self.another()

    def another(self) -> dibs.Board:
        """The board as another process sees it."""
        return self.place.other()

    def teardown(self) -> None:
        self.places.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def payload(self) -> bytes:
        self.serial += 1
        return f"payload {self.serial}".encode()

    def took(self, claim: dibs.Claim, entry: Entry, owner: str) -> Kept:
        """Note in the reference that an entry was claimed."""
        assert claim.fence == entry.fence + 1
        assert tuple((each.text, each.answer) for each in claim.answers) == entry.answers
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

    @rule(ident=st.sampled_from(IDENTS))
    def add_for_later(self, ident: str) -> None:
        if ident in self.ref.known:
            return
        payload = self.payload()
        task = self.board.add(ident, payload, start_in=75)
        assert task.state == LATER
        self.ref.known.add(ident)
        entry = Entry(ident, LATER, payload, task.fence)
        entry.due = self.ref.now + 75
        self.ref.entries.append(entry)

    @rule(target=claims, owner=st.sampled_from(OWNERS), fresh=st.booleans())
    def claim(self, owner: str, fresh: bool) -> Kept:
        waiting = self.ref.waiting()
        board = self.another() if fresh else self.board
        if self.ref.pauses and waiting:
            with pytest.raises(dibs.Paused):
                board.claim(owner=owner)
            self.requeued_at_once()
            return multiple()  # type: ignore[return-value]
        try:
            claim = board.claim(owner=owner)
        except dibs.Paused:  # a worker that looks first, though there is nothing to claim
            assert self.ref.pauses
            claim = None
        if not waiting:
            assert claim is None
            return multiple()  # type: ignore[return-value]
        assert claim is not None
        entry = next(e for e in waiting if e.id == claim.id)
        if fresh:  # a new process claims the most urgent task
            assert entry.priority == waiting[0].priority
        assert claim.payload() == entry.payload
        return self.took(claim, entry, owner)

    @rule(target=claims, ident=st.sampled_from(IDENTS + OFFERED), owner=st.sampled_from(OWNERS))
    def claim_one(self, ident: str, owner: str) -> Kept:
        present = self.ref.present(ident)
        if self.ref.pauses:
            with pytest.raises(dibs.Paused):
                self.board.claim(ident, owner=owner)
            return multiple()  # type: ignore[return-value]
        early = [e for e in present if e.state == LATER and not self.ref.ready(e)]
        waits = [e for e in present if e.state == ASKED]
        if len(present) != 1 or present[0].live or early or waits:
            wrong = dibs.UnknownId if not present else dibs.NotDue if early else dibs.Held
            wrong = dibs.Asked if waits else wrong
            with pytest.raises(dibs.Exists if len(present) > 1 else wrong) as caught:
                self.board.claim(ident, owner=owner)
            if isinstance(caught.value, dibs.Held):
                assert isinstance(caught.value, dibs.NotDue) == bool(early)
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
        if not found:
            found = [Entry(ident, FREE, b"")]
            self.ref.entries += found
        if any(pause.locks for pause in self.ref.pauses):
            with pytest.raises(dibs.Paused):
                self.board.acquire(ident, owner=owner)
            self.note_new_fences(found)
            return multiple()  # type: ignore[return-value]
        lease = self.board.acquire(ident, owner=owner)
        return self.took(lease, found[0], owner)

    def requeued_at_once(self) -> None:
        """Note the new fence of the one task that was claimed and requeued, if there is one."""
        self.note_new_fences(self.ref.waiting())

    def note_new_fences(self, entries: Iterable[Entry]) -> None:
        """Note the new fence of what was claimed and returned at once during a pause."""
        states = (AVAILABLE, LATER, FREE)
        shown = {t.id: t for t in self.board.snapshot().tasks.values() if t.state in states}
        changed = [e for e in entries if shown[e.id].fence != e.fence]
        assert len(changed) <= 1
        for entry in changed:
            assert shown[entry.id].fence == entry.fence + 1
            self.ref.grant(entry, entry.fence + 1)
            entry.fence += 1
            entry.state = shown[entry.id].state

    @rule(locks=st.booleans())
    def pause(self, locks: bool) -> None:
        pause, held = self.board.pause_claims("why", locks=locks)
        live = sorted(entry.claim for entry in self.ref.entries if entry.live)
        assert sorted(task.claim for task in held) == live
        self.ref.pauses.append(pause)

    @precondition(lambda self: self.ref.pauses)
    @rule(data=st.data())
    def end_pause(self, data: st.DataObject) -> None:
        pause = data.draw(st.sampled_from(self.ref.pauses))
        assert self.another().resume_claims([pause.name]) == (pause,)
        self.ref.pauses.remove(pause)
        assert self.board.pauses() == tuple(sorted(self.ref.pauses, key=lambda p: (p.at, p.name)))

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
            here = self.owns(kept) and entry.live  # a late release of a lock is refused
            with pytest.raises(dibs.Uncertain if here else dibs.Lost):
                act()
            return
        if not self.owns(kept):
            with pytest.raises(dibs.Lost):
                act()
            return
        if not entry.live:  # a repeated commit
            if verb == "done" and entry.state == "done":
                assert act().state == "done"
            return
        task = act()
        if verb == "done":
            self.freed(entry, "done", entry.claim)
        elif verb == "release":
            self.freed(entry, FREE if entry.state == HELD else AVAILABLE)
        else:
            self.attempt(entry, self.ref.now)
        assert task.state == entry.state

    def attempt(self, entry: Entry, since: float) -> None:
        """Count a failure, or an expiry since the last beat, in the reference."""
        if entry.state == HELD:
            self.freed(entry, FREE)
            return
        entry.attempts += 1
        if entry.attempts >= LIMIT:
            self.freed(entry, "failed", entry.claim)
            return
        entry.due = since + DELAYS[min(entry.attempts, len(DELAYS)) - 1]
        self.freed(entry, LATER if entry.due > self.ref.now else AVAILABLE)

    @rule(kept=claims)
    def ask(self, kept: Kept) -> None:
        entry, claim = kept.entry, kept.claim
        text = f"question {claim.fence}?"
        if claim.task.state == HELD:
            with pytest.raises(dibs.BadName):
                claim.ask(text)
        elif self.owns(kept) and entry.live:
            assert claim.ask(text).state == ASKED
            entry.state, entry.question = ASKED, text
            entry.askers |= {entry.claim}
        elif entry in self.ref.entries and claim.task.claim in entry.askers:
            assert claim.ask("something else?").id == entry.id
        else:
            with pytest.raises(dibs.Lost):
                claim.ask(text)

    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        picked = self.pick(data, ASKED)
        if picked is not None:
            self.serial += 1
            self.board.answer(picked[1], f"answer {self.serial}", by="root")
            self.moved_on(picked[0], f"answer {self.serial}")
            self.freed(picked[0], AVAILABLE)

    def moved_on(self, entry: Entry, answer: str | None = None) -> None:
        """Note that an asked task no longer waits."""
        if entry.state == ASKED:
            entry.answers += ((entry.question, answer),)

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
        """Reaping a live claim is refused; expired ones were reaped when the time passed."""
        with pytest.raises(dibs.Refused) as caught:
            self.board.reap_claim(kept.claim.task.name, "looks dead")
        there = self.owns(kept) and kept.entry.live
        assert isinstance(caught.value, dibs.Changed) is not there

    def pick(self, data: st.DataObject, *states: str) -> tuple[Entry, str] | None:
        """An entry in one of these states, with its exact name on the board."""
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
        picked = self.pick(data, AVAILABLE, LATER, CLAIMED, ASKED)
        if picked is not None:
            task = self.board.park(picked[1], "flaky", by="root")
            self.moved_on(picked[0])
            self.freed(picked[0], "failed", task.claim)

    @rule(data=st.data(), keep=st.booleans())
    def requeue(self, data: st.DataObject, keep: bool) -> None:
        picked = self.pick(data, "failed", "done", LATER, ASKED)
        if picked is None:
            return
        entry, name = picked
        if any(other is not entry for other in self.ref.present(entry.id)):
            with pytest.raises(dibs.Changed):
                self.board.requeue(name, keep_attempts=keep)
            return
        self.board.requeue(name, keep_attempts=keep)
        self.moved_on(entry)
        self.freed(entry, AVAILABLE)
        entry.attempts = entry.attempts if keep else 0

    @rule(data=st.data(), priority=st.integers(0, 9))
    def prioritize(self, data: st.DataObject, priority: int) -> None:
        picked = self.pick(data, AVAILABLE, LATER)
        if picked is not None:
            self.board.prioritize(picked[1], priority)
            picked[0].priority = priority

    @rule()
    def purge(self) -> None:
        done = [e for e in self.ref.entries if e.state == "done"]
        assert self.board.purge(0) == len(done)
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

    @precondition(lambda self: self.ref.entries)
    @rule(seconds=st.sampled_from([50, 130]), exactly=st.booleans())
    def pass_time(self, seconds: int, exactly: bool) -> None:
        self.wait(seconds, exactly=exactly)

    def wait(self, seconds: int, *, exactly: bool = False) -> None:
        """Let time pass, then reap the expired claims, all at once or by exact name."""
        self.board.snapshot()
        self.place.advance(seconds)
        self.ref.now += seconds
        stale = [e for e in self.ref.entries if e.live and self.ref.now - e.beaten > TTL]
        snapshot = self.board.snapshot()
        shown = [t for t in snapshot.tasks.values() if snapshot.stale(t.name)]
        assert sorted(t.claim for t in shown) == sorted(e.claim for e in stale)
        if exactly:  # due tasks stay later, and workers claim them from there
            given = [self.board.reap_claim(t.name) for t in shown]
            assert len(given) == len(stale)
            for entry in stale:
                self.attempt(entry, entry.beaten)
            return
        due = [e for e in self.ref.entries if e.state == LATER and self.ref.ready(e)]
        reaped = self.board.reap()
        assert (len(reaped.tasks), reaped.refused) == (len(stale), ())
        assert sorted(t.id for t in reaped.due) == sorted(e.id for e in due)
        for entry in due:
            entry.state = AVAILABLE
        for entry in stale:
            self.attempt(entry, entry.beaten)

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
