"""The read-only view of a board that the pure parts of the dashboard use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dibs import Entry, Event, Holder, Question, Sample, Task, Verdict, Waiter
    from dibs.model.beat_history import BeatHistory


class KnownBoard(Protocol):
    """Everything that is known about one board now; `BoardModel` implements it."""

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Every task by its exact name."""

    @property
    def holders(self) -> Mapping[str, Holder]:
        """Holder, beat and lease of each claim, by exact name."""

    @property
    def stale(self) -> Mapping[str, Verdict]:
        """The verdict on each stale claim, by exact name."""

    @property
    def questions(self) -> Mapping[str, Question]:
        """What each asked task waits with, by exact name."""

    @property
    def since(self) -> Mapping[str, int]:
        """When each task began to wait or ended, in nanoseconds of the board's clock."""

    @property
    def beat_histories(self) -> Mapping[str, BeatHistory]:
        """The beats of each claim, by exact name."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """The reason of the last failure or parking, by id; `parked` if a parking has none."""

    @property
    def waiters(self) -> Sequence[Waiter]:
        """The workers that wait for tasks."""

    @property
    def feed(self) -> Iterable[Event]:
        """The recent events, the newest first."""

    @property
    def now(self) -> Sample:
        """The time up to which the board is known: its clock, unless it cannot be read now."""

    def state_of(self, task: Task) -> str:
        """The state that operators see: the name's word, or `stale`."""

    def is_late(self, name: str) -> bool:
        """Whether a claim is listed as late."""

    def entry(self, task: Task) -> Entry:
        """A task as filters and table cells read it."""
