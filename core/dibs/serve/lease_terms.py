"""What the server has to remember of a lease besides its claim, in the claim's note.

So it is on the board, where another server, or this one after a crash, reads it again.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dibs.model.outputs import NOTE_CHARS

_match = re.compile(
    r"lease:(?: delay=([0-9]{1,2}))?(?: session=(\S{1,120}?)( ephemeral)?)?(?: name=(\S{1,256}))?"
).fullmatch


class LeaseTerms(NamedTuple):
    """The terms of a lease that a claim itself has no place for."""

    delay: int = 0
    """Seconds after its expiry during which no one gets the lock."""
    session: str = ""
    ephemeral: bool = False
    """Whether the lock is released when the session ends."""
    name: str = ""
    """The full name of the lock, where it is too long for an id."""

    @property
    def note(self) -> str:
        """The terms as a note; empty if there are none."""
        text = f" delay={self.delay}" if self.delay else ""
        text += f" session={self.session}" if self.session else ""
        text += " ephemeral" if self.ephemeral else ""
        if self.name and len(text) + len(self.name) + 12 <= NOTE_CHARS:
            text += f" name={self.name}"
        return f"lease:{text}" if text else ""


def terms_of(note: str) -> LeaseTerms:
    """The terms in a note; a note with other text has none."""
    m = _match(note)
    if m is None:
        return LeaseTerms()
    return LeaseTerms(min(int(m[1] or 0), 30), m[2] or "", m[3] is not None, m[4] or "")
