"""Everything that the disk tells of one task, found out step by step, the quickest first.

All of it runs in a thread that may hang with the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dibs import Board, Changed, DibsError, Event, Evidence, Facts, Task, Verdict
from dibs_tui import payload
from dibs_tui.payload import Payload

KEPT = 500
"""So many of the newest events of one id are kept."""
_LOOKED = 10 * KEPT
"""So many are counted."""


class FileSeen(NamedTuple):
    """One file name that has to do with a task."""

    path: str
    """Absolute, as the directory has it."""
    what: str
    told: str
    """Its size, or why there is none."""


class Dossier(NamedTuple):
    """What is known of one task."""

    task: Task
    board: str = ""
    """The board's path."""
    facts: Facts | None = None
    evidence: Evidence | None = None
    """What is known of its holder, where somebody holds it."""
    beside: tuple[Facts, ...] = ()
    """Claims that may share its host."""
    cadence: float = 0.0
    """The usual seconds between two of its beats; 0 where too few were seen."""
    payload: Payload | None = None
    gone: bool = False
    """Its exact name was not there."""
    found: tuple[Task, ...] | None = None
    """Every name of the id; None as long as nobody has looked."""
    files: tuple[FileSeen, ...] = ()
    events: tuple[Event, ...] | None = None
    """What the journal tells of the id, the newest last; None as long as nobody has looked."""
    earlier: int = 0
    """How many more there are, before those."""
    trouble: str = ""
    """Why a part could not be found out."""

    @property
    def verdict(self) -> Verdict | None:
        """The evidence in a word."""
        return self.evidence.verdict if self.evidence is not None else None


def look_up(board: Board, known: Dossier, *, briefly: bool = False) -> Iterator[Dossier]:
    """What is known, each time that it is more; `briefly` leaves out what is slow to find."""
    known = known._replace(board=board.path, trouble="")
    for steps in ((_claim, _content), (_names,), (_life,))[: 1 if briefly else None]:
        for step in steps:
            known = _tried(step, board, known)
        yield known


def _tried(step: Callable[[Board, Dossier], Dossier], board: Board, known: Dossier) -> Dossier:
    """The next step; its failure is told and leaves what was known before."""
    try:
        return step(board, known)
    except DibsError as error:
        trouble = str(error)
    except Exception as error:  # nothing read from a directory may end a look at it
        trouble = f"{known.task.name}: {error!r}"
    return known._replace(trouble=known.trouble or trouble)


def _claim(board: Board, known: Dossier) -> Dossier:
    if not known.task.live:
        return known
    try:
        evidence = board.evidence(known.task, known.beside, known.cadence)
    except Changed:
        return known._replace(evidence=None)
    return known._replace(facts=evidence.facts, evidence=evidence)


def _content(board: Board, known: Dossier) -> Dossier:
    try:
        data = board.payload(known.task, payload.PART)
    except Changed as changed:
        return known._replace(gone=True, found=changed.now)
    size = max(len(data), os.lstat(os.path.join(board.path, known.task.name)).st_size)
    before = known.payload
    if before is None or (before.data, before.size) != (data, size):
        before = payload.read(data, size)
    return known._replace(gone=False, payload=before)


def _names(board: Board, known: Dossier) -> Dossier:
    found = board.find(known.task.id)
    names = dict(name for task in (known.task, *found) for name in _names_of(task))
    files = tuple(_file(board.path, name, what) for name, what in names.items())
    return known._replace(found=found, files=files)


def _names_of(task: Task) -> Iterator[tuple[str, str]]:
    """The files of one name, and what each of them is."""
    yield task.name, f"the {task.kind}, {task.state}"
    if task.live and task.plain:
        yield f"{task.stem}.lock", "its lock, the heartbeat"
    elif task.live:
        yield f".dibs/records/{task.stem}", "the claim's record, the heartbeat"


def _life(board: Board, known: Dossier) -> Dossier:
    events = board.history(known.task.id, _LOOKED)
    return known._replace(events=tuple(events[-KEPT:]), earlier=max(0, len(events) - KEPT))


def _file(root: str, name: str, what: str) -> FileSeen:
    path = os.path.join(root, name)
    try:
        return FileSeen(path, what, payload.size_of(os.lstat(path).st_size))
    except FileNotFoundError:
        return FileSeen(path, what, "not there")
    except OSError as error:
        return FileSeen(path, what, error.strerror or "cannot be looked at")
