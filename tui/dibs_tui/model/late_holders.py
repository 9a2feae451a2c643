"""Watches revoked claims: a former holder that is still at work is reported."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from dibs import Event, Task
from dibs.model.events import REFUSED
from dibs.model.names import read_any
from dibs_tui.text.ages import clock
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs import Holder

_MIN_WATCH = 120.0
_TTLS = 1.5
_KEPT = 1000
_LONG = 60
"""The most characters that are shown of a name."""
REVOKING = ("force-release", "reap")
_TRIED = {
    "beat": "tried to send a heartbeat",
    "done": "tried to finish the task",
    "fail": "tried to fail the task",
    "release": "tried to release the task",
    "verify": "checked its claim",
    "read": "read the payload",
}


class _Revoked(NamedTuple):
    """A revoked claim whose former holder is watched for."""

    task: Task
    who: str
    until: float
    """The end of the watch, in seconds of the board's clock."""


class _Return(NamedTuple):
    """A holder that came back to its revoked claim, in clean parts."""

    who: str
    id: str
    fence: int
    did: str
    """What it did, when, and who holds the task now."""
    at: float

    @property
    def text(self) -> str:
        """What it did to which task."""
        return f"{self.id}: {self.did}"


class LateHolders:
    """The revoked claims that are still watched, and those whose holders came back."""

    def __init__(self) -> None:
        self._watched: dict[str, _Revoked] = {}
        self.back: dict[str, _Return] = {}
        """Each holder that came back, by revoked claim; kept until `clear`."""
        self._ends: dict[str, float] = {}
        """When the watch of each claim in `back` ends, in seconds of the board's clock."""
        self._dropped = 0
        """The number of holders that came back and are no longer listed."""
        self.count = 0
        """The number of holders that ever came back."""
        self.newest = ""
        """The sentence for the latest one."""

    def note(self, event: Event, known: Holder | None, tasks: Iterable[Task]) -> bool:
        """Watch a claim that was revoked, or note what its holder tried; True if it came back."""
        if event.verb in REVOKING:
            self._watch(event, known)
            return False
        if event.verb != REFUSED:
            return False
        tried = _TRIED.get(event.reason, f"tried to {clean(event.reason, _LONG) or 'go on'}")
        return self._came_back(event.src, event.at, tried, tasks)

    def note_beat(self, stem: str, at: float, tasks: Iterable[Task]) -> bool:
        """Note a beat of a revoked claim; True if its holder was watched for."""
        return self._came_back(stem, at, "sent a heartbeat", tasks)

    def folded(self, since: float = 0.0) -> tuple[str, str]:
        """All holders that came back since a time in one line: who, and what the last one did."""
        found = [each for each in self.back.values() if each.at >= since]
        if not found:
            return "", ""
        last = found[-1]
        dropped = self._dropped if len(found) == len(self.back) else 0
        count, who = len(found) + dropped, {each.who for each in found}
        if count == 1:
            claim = f"its revoked claim #{last.fence} on {last.id}"
        else:
            claim = f"{count:,} revoked claims"
        name = last.who if len(who) == 1 else f"{len(who):,} holders"
        return f"{name} came back to {claim}", last.did if count == 1 else f"last {last.text}"

    def clear(self) -> None:
        """Forget those that came back, because the operator has read it."""
        self.back.clear()
        self._ends.clear()
        self._dropped = 0

    def drop_ended(self, now: float, keep: Container[str]) -> None:
        """Forget claims whose watch ended before `now`, except those in `keep`.

        A dashboard that is opened reads old events, too; they need no one's attention any more.
        """
        for stem in [s for s, end in self._ends.items() if end < now and s not in keep]:
            del self._ends[stem], self.back[stem]
            self.count -= 1

    def _watch(self, event: Event, known: Holder | None) -> None:
        old = read_any(event.src)
        if old is None or not old.live:
            return
        who = clean(known.owner if known is not None else old.owner, _LONG) or "its former holder"
        host = known.host if known is not None else ""
        who += f" on {clean(host, _LONG)}" if host and host != who else ""
        ttl = known.ttl if known is not None else 0.0
        self._watched[old.stem] = _Revoked(old, who, event.at + max(_MIN_WATCH, _TTLS * ttl))
        for stem in list(self._watched)[:-_KEPT]:
            del self._watched[stem]

    def _came_back(self, stem: str, at: float, how: str, tasks: Iterable[Task]) -> bool:
        old = self._watched.get(stem)
        if old is None or at > old.until:
            return False
        del self._watched[stem]  # reported once, however often it tries
        task = old.task
        now = next((t for t in tasks if t.id == task.id and t.live), None)
        holder = f"; {clean(now.owner, _LONG)} holds #{now.fence}" if now is not None else ""
        self.count += 1
        self.newest = (
            f"{old.who} came back and {how}: its claim #{task.fence} on {clean(task.id, _LONG)} "
            f"was revoked{holder}"
        )
        did = f"{how}, {clock(at)}{holder}"
        self.back[stem] = _Return(old.who, clean(task.id, _LONG), task.fence, did, at)
        self._ends[stem] = old.until
        if len(self.back) > _KEPT:
            oldest = next(iter(self.back))
            del self.back[oldest], self._ends[oldest]
            self._dropped += 1
        return True
