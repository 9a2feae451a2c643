"""The machine on the files engine, where shells, people and copies also make names."""

from __future__ import annotations

import os

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

import dibs
from dibs.model.names import escape
from dibs.model.task import AVAILABLE
from tests.contract.board_machine import OFFERED, BoardMachine
from tests.contract.reference import Entry
from tests.core import tools


class AgingDisk(tools.Movable):
    """A disk on which a wait makes the folders older instead of moving the clocks."""

    def sleep(self, seconds: float) -> None:
        for folder in ("", "done", "failed"):
            path = os.path.join(self.root, folder)
            status = os.stat(path)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 10**10))


class FilesMachine(BoardMachine):
    """Runs every verb in any order while others change the directory."""

    engine = "files"
    place: tools.Place

    def another(self) -> dibs.Board:
        return tools.opened(AgingDisk(self.place.path, self.place.world))

    @rule(ident=st.sampled_from(OFFERED))
    def offer_by_shell(self, ident: str) -> None:
        if self.ref.of(ident) or ident in self.ref.granted:
            return
        entry = Entry(ident, AVAILABLE, self.payload())
        (self.place.path / f"{ident}.available").write_bytes(entry.payload)
        self.ref.entries.append(entry)

    @rule(data=st.data())
    def double_by_hand(self, data: st.DataObject) -> None:
        picked = self.pick(data, AVAILABLE)
        if picked is None:
            return
        payload = self.payload()
        entry = Entry(picked[0].id, AVAILABLE, payload, fence=1000 * self.serial, priority=3)
        eid = escape(entry.id)
        (self.place.path / f"{eid}.f{entry.fence}p3.available").write_bytes(payload)
        self.wait(2)  # so that a worker lists the board again
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

    @invariant()
    def nothing_is_incomplete(self) -> None:
        live = sorted(e.claim for e in self.ref.entries if e.live)
        records = (self.place.path / ".dibs/records").iterdir()
        assert sorted(path.name.rpartition(".")[2] for path in records) == live
        assert list((self.place.path / ".dibs/new").iterdir()) == []
