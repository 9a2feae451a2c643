"""After a claim was taken from its holder: whether the old holder shows that it lives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from dibs import Event, Task
from dibs.journal import REFUSED
from dibs.names import read_any
from dibs_tui.ages import clock
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs import Facts

_LEAST = 120.0
_TTLS = 1.5
_KEPT = 1000
_LONG = 60
"""Characters of a name that are told."""
_TOLD = 2
BROKEN = ("force-release", "reap")
_TRIED = {
    "beat": "it tried to beat",
    "done": "it tried to commit",
    "fail": "it tried to hand it back as failed",
    "release": "it tried to give it back",
    "verify": "it asked whether it still holds it",
    "read": "it read the payload",
}


class _Old(NamedTuple):
    """A claim that is void since somebody broke it."""

    task: Task
    who: str
    until: float
    """As long as its holder is watched for, in seconds of the board's clock."""


class Aftermath:
    """The broken claims that are still watched, and those whose holders came back."""

    def __init__(self) -> None:
        self._watched: dict[str, _Old] = {}
        self.back: dict[str, str] = {}
        """What is said of each that came back, by the void claim; sticks until it is cleared."""
        self._dropped = 0
        """How many more came back than are kept."""
        self.count = 0
        """How many ever came back."""
        self.newest = ""
        """The last of them in a sentence."""

    def note(self, event: Event, known: Facts | None, tasks: Iterable[Task]) -> bool:
        """Watch a claim that was just broken, or hear of its holder; whether it came back now."""
        if event.verb in BROKEN:
            self._watch(event, known)
            return False
        if event.verb != REFUSED:
            return False
        tried = _TRIED.get(event.reason, f"it tried to {clean(event.reason, _LONG) or 'go on'}")
        return self._came_back(event.src, event.at, tried, tasks)

    def heard(self, stem: str, at: float, tasks: Iterable[Task]) -> bool:
        """A beat came for a claim that is void; whether its holder was watched for."""
        return self._came_back(stem, at, "it beats again", tasks)

    def told(self) -> list[str]:
        """Those that came back, the newest first, in a few lines."""
        lines = list(self.back.values())[::-1]
        more = len(lines) + self._dropped - _TOLD
        rest = [f"and {more:,} more came back, to claims that are void"] if more > 0 else []
        return [*lines[:_TOLD], *rest]

    def clear(self) -> None:
        """Somebody has read it."""
        self.back.clear()
        self._dropped = 0

    def _watch(self, event: Event, known: Facts | None) -> None:
        old = read_any(event.src)
        if old is None or not old.live:
            return
        who = clean(known.owner if known is not None else old.owner, _LONG) or "its old holder"
        host = known.record.host if known is not None and known.record is not None else ""
        who += f" on {clean(host, _LONG)}" if host and host != who else ""
        ttl = known.ttl if known is not None else 0.0
        self._watched[old.stem] = _Old(old, who, event.at + max(_LEAST, _TTLS * ttl))
        for stem in list(self._watched)[:-_KEPT]:
            del self._watched[stem]

    def _came_back(self, stem: str, at: float, how: str, tasks: Iterable[Task]) -> bool:
        old = self._watched.get(stem)
        if old is None or at > old.until:
            return False
        del self._watched[stem]  # it is told once, however often it tries
        task = old.task
        now = next((t for t in tasks if t.id == task.id and t.live), None)
        whose = f"; #{now.fence} belongs to {clean(now.owner, _LONG)}" if now is not None else ""
        self.count += 1
        self.newest = (
            f"{old.who} came back: its claim #{task.fence} is void{whose} "
            f"· {clean(task.id, _LONG)}, {how}"
        )
        self.back[stem] = f"{clock(at)} {self.newest}"
        if len(self.back) > _KEPT:
            del self.back[next(iter(self.back))]
            self._dropped += 1
        return True
