"""Whether a storage can carry a board, judged by a probe's results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

GOOD, NOTE, BAD = "good", "note", "bad"
FINE, POLLING, UNFIT = "fine", "polling", "unfit"


class Ability(NamedTuple):
    """One ability of the storage that was tested, with the result.

    >>> [found.grade for found in board.probe() if found.ability == "rename"]
    ['good']
    """

    ability: str
    grade: str
    """`good`, `bad`, or `note` if something is missing that is not essential."""
    text: str
    figures: Mapping[str, object] = {}
    least_ttl: float = 0.0
    """The shortest safe ttl in seconds because of this."""
    polling: bool = False
    """Whether the storage reports no changes, so that readers have to poll."""


class Fitness(NamedTuple):
    """The verdict on a storage."""

    status: str
    """`fine`, `polling` (fine, but changes are not reported) or `unfit` (do not use it)."""
    least_ttl: int
    """The shortest safe ttl in seconds; 1 if any ttl is safe."""
    why: tuple[str, ...]

    @property
    def text(self) -> str:
        """The verdict as a text."""
        if self.status == UNFIT:
            return f"do not use: {'; '.join(self.why)}"
        text = "fine with polling" if self.status == POLLING else "fine"
        return f"{text}, least ttl {self.least_ttl} s" if self.least_ttl > 1 else text


def trouble(found: Fitness, ttl: float) -> str:
    """Why a board with that ttl should not be used here; empty if it can be."""
    if found.status != UNFIT and found.least_ttl > ttl:
        return f"{found.text}, but this board's ttl is {ttl:g} s: raise it in .dibs/board.toml"
    return found.text if found.status == UNFIT else ""


def verdict(lines: Iterable[Ability]) -> Fitness:
    """The verdict that follows from all tests."""
    lines = list(lines)
    why = tuple(f"{line.ability}: {line.text}" for line in lines if line.grade == BAD)
    status = UNFIT if why else POLLING if any(line.polling for line in lines) else FINE
    return Fitness(status, max(1, ceil(max((line.least_ttl for line in lines), default=0))), why)
