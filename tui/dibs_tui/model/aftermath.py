"""After a claim was taken from its holder: whether the old holder shows that it lives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dibs import Event, Task
from dibs.names import read_any
from dibs_tui.text import clean

_LEAST = 120.0
_TTLS = 1.5
_KEPT = 1000
BROKEN = ("force-release", "reap")


class _Old(NamedTuple):
    """A claim that is void since somebody broke it."""

    task: Task
    until: float
    """As long as its holder is watched for, in seconds of the board's clock."""


class Aftermath:
    """The broken claims that are still watched, and those whose holders came back."""

    def __init__(self) -> None:
        self._watched: dict[str, _Old] = {}
        self.back: dict[str, str] = {}
        """What is said of each that came back, by the void claim; sticks until it is cleared."""

    def note(self, event: Event, ttl: float | None, tasks: Iterable[Task]) -> bool:
        """Watch a claim that was just broken, or hear of its holder; whether it came back now."""
        if event.verb in BROKEN:
            old = read_any(event.src)
            if old is not None and old.live:
                until = event.at + max(_LEAST, _TTLS * (ttl or 0.0))
                self._watched[old.stem] = _Old(old, until)
                for stem in list(self._watched)[:-_KEPT]:
                    del self._watched[stem]
            return False
        if event.verb != "refused":
            return False
        return self._came_back(event.src, event.at, f"tried to {clean(event.reason)}", tasks)

    def heard(self, stem: str, at: float, tasks: Iterable[Task]) -> bool:
        """A beat came for a claim that is void; whether its holder was watched for."""
        return self._came_back(stem, at, "beats again", tasks)

    def clear(self) -> None:
        """Somebody has read it."""
        self.back.clear()

    def _came_back(self, stem: str, at: float, what: str, tasks: Iterable[Task]) -> bool:
        old = self._watched.get(stem)
        if old is None or at > old.until or stem in self.back:
            return False
        task = old.task
        now = next((t for t in tasks if t.id == task.id and t.live), None)
        whose = f"; #{now.fence} belongs to {clean(now.owner)}" if now is not None else ""
        self.back[stem] = (
            f"{clean(task.owner) or 'its old holder'} came back for {clean(task.id)} and {what}: "
            f"its claim #{task.fence} is void{whose}"
        )
        return True
