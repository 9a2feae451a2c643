"""Everything that is known about one task so far."""

from __future__ import annotations

from typing import NamedTuple

from dibs import Event, Evidence, Holder, Output, Question, Task, Verdict
from dibs_tui.model.payload import Payload


class TaskFile(NamedTuple):
    """One file of a task."""

    path: str
    """The absolute path; not cleaned."""
    what: str
    status: str
    """Its size, or why it has none."""


class TaskDetails(NamedTuple):
    """Everything that is known about one task so far."""

    task: Task
    board: str = ""
    """The board's path."""
    holder: Holder | None = None
    evidence: Evidence | None = None
    """The evidence on its holder; None if it has none."""
    beside: tuple[Holder, ...] = ()
    """Other claims, which may be of the same host."""
    cadence: float = 0.0
    """The usual seconds between two of its beats; 0 if too few were seen."""
    questions: tuple[Question, ...] = ()
    """What was asked about it and answered, the oldest first."""
    payload: Payload | None = None
    gone: bool = False
    """Its exact name is no longer on the board."""
    found: tuple[Task, ...] | None = None
    """Every task with this id; None until it was looked up."""
    files: tuple[TaskFile, ...] = ()
    events: tuple[Event, ...] | None = None
    """The events of the id from the log, newest last; None until they were read."""
    earlier: int = 0
    """The number of earlier events that were not read."""
    result: bytes | None = None
    """The result with which it was done; None if it has none."""
    follows: bool = False
    """Whether its output is wanted."""
    attempt: int = 0
    """The number of the claim whose output is `output`."""
    output: Output | None = None
    """The end of its output; None if none was kept, or if it was not read yet."""
    trouble: str = ""
    """Why a part could not be read."""

    @property
    def verdict(self) -> Verdict | None:
        """The evidence in one word."""
        return self.evidence.verdict if self.evidence is not None else None
