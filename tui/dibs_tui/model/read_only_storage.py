"""A storage that takes no changes: whether that stops the workers, or only this dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs_tui.model.causes import missed_beat
from dibs_tui.model.owners import held

if TYPE_CHECKING:
    from dibs import Health
    from dibs_tui.model.known_board import KnownBoard

STOPPED = "no worker can claim, beat or finish"


class ReadOnlyStorage:
    """Judges a storage that takes no changes here by the claims: elsewhere it may take them."""

    def __init__(self) -> None:
        self.why = ""
        """Why no worker can write, in one line; empty while workers can, or may be able to."""
        self.full = ""
        """What the storage has run out of; empty if it has room."""
        self._was_writable = False

    def note(self, health: Health, model: KnownBoard) -> None:
        """Note the health of the watch on a board that was seen in full."""
        self.full = health.why_full
        if not health.fresh or health.trouble:
            return
        if not health.storage_read_only:
            self._was_writable, self.why = True, ""
            return
        now = model.now.fs
        missed = [missed_beat(claim) for claim in held(model) if claim.host]
        stops = all(one.due < now for one in missed) if missed else self._was_writable
        self.why = health.why_read_only if stops else ""
