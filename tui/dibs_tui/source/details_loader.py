"""The thread that reads the details of one task from the board, the quickest parts first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from threading import Event as Signal
from threading import Thread
from typing import NamedTuple

from dibs import Board, Changed, DibsError, Task
from dibs_tui.model import payload
from dibs_tui.model.task_details import TaskDetails, TaskFile

KEPT = 500
"""The number of events of one id to keep, the newest ones."""
_COUNTED = 10 * KEPT
"""The number of events to count."""


class _Request(NamedTuple):
    open_board: Callable[[], Board]
    known: TaskDetails
    briefly: bool


class DetailsLoader(Thread):
    """Reads the details of tasks, one after the other; if the disk hangs, only this thread does.

    A newer request replaces one that waits, and cuts short one that is being answered.
    """

    def __init__(self, found: Callable[[TaskDetails], object], rest: float) -> None:
        super().__init__(name="dibs-details", daemon=True)
        self._found = found
        self._rest = rest
        self._request: _Request | None = None
        self._called = Signal()
        self.busy = False
        """Whether a request is not answered yet."""

    def ask(self, open_board: Callable[[], Board], known: TaskDetails, *, briefly: bool) -> None:
        """Read this task's details as soon as possible."""
        self._request = _Request(open_board, known, briefly)
        self.busy = True
        self._called.set()

    def stop(self) -> None:
        """End as soon as the disk answers."""
        self._request = None
        self._called.set()

    def run(self) -> None:
        """Answer requests until stopped."""
        while True:
            self._called.wait()
            self._called.clear()
            request = self._request
            if request is None:
                return
            for known in _answers(request):
                try:
                    self._found(known)
                except RuntimeError:  # the app has ended meanwhile
                    return
                if self._called.wait(self._rest):
                    break
            else:
                self.busy = self._called.is_set()


def _answers(request: _Request) -> Iterator[TaskDetails]:
    try:
        board = request.open_board()
    except DibsError as error:
        yield request.known._replace(trouble=str(error))
    else:
        yield from look_up(board, request.known, briefly=request.briefly)


def look_up(board: Board, known: TaskDetails, *, briefly: bool = False) -> Iterator[TaskDetails]:
    """Yield the details each time there are more; `briefly` leaves out the slow parts."""
    known = known._replace(board=board.location.label, trouble="")
    stages = ((_claim, _questions, _content, _output), (_names,), (_life,))
    for steps in stages[: 1 if briefly else None]:
        for step in steps:
            known = _tried(step, board, known)
        yield known


def _tried(
    step: Callable[[Board, TaskDetails], TaskDetails], board: Board, known: TaskDetails
) -> TaskDetails:
    """The details after a step; if it fails, the old ones with the error."""
    try:
        return step(board, known)
    except DibsError as error:
        trouble = str(error)
    except Exception as error:  # whatever is in the directory, the thread must not end
        trouble = f"{known.task.name}: {error!r}"
    return known._replace(trouble=known.trouble or trouble)


def _claim(board: Board, known: TaskDetails) -> TaskDetails:
    if not known.task.live:
        return known
    try:
        evidence = board.evidence(known.task, known.beside, known.cadence)
    except Changed:
        return known._replace(evidence=None)
    return known._replace(holder=evidence.holder, evidence=evidence)


def _questions(board: Board, known: TaskDetails) -> TaskDetails:
    return known._replace(questions=board.questions(known.task))


def _content(board: Board, known: TaskDetails) -> TaskDetails:
    try:
        data = board.payload(known.task, payload.PART)
    except Changed as changed:
        return known._replace(gone=True, found=changed.now)
    path = board.location.payload_path(known.task)
    size = len(data) if path is None else max(len(data), os.lstat(path).st_size)
    before = known.payload
    if before is None or (before.data, before.size) != (data, size):
        before = payload.read(data, size)
    return known._replace(gone=False, payload=before)


def _output(board: Board, known: TaskDetails) -> TaskDetails:
    """The result of a task that is done, and the end of its output if that is wanted."""
    if known.task.state == "done":
        known = known._replace(result=board.result(known.task))
    if not known.follows:
        return known
    task = known.task
    claim, attempt = task.stem if task.claim else "", task.fence
    if not claim:
        kept = board.outputs(task.id)
        if not kept:
            return known
        claim, attempt = kept[-1].claim, kept[-1].attempt
    return known._replace(output=board.output(claim, last=payload.PART), attempt=attempt)


def _names(board: Board, known: TaskDetails) -> TaskDetails:
    found = board.find(known.task.id)
    names = dict(name for task in (known.task, *found) for name in _names_of(task))
    folder = board.location.folder
    files = tuple(_file(folder, name, what) for name, what in names.items()) if folder else ()
    return known._replace(found=found, files=files)


def _names_of(task: Task) -> Iterator[tuple[str, str]]:
    """Yield the files of one task, and what each of them is."""
    yield task.name, f"the {task.kind}, {task.state}"
    if task.live and task.is_shell_claim:
        yield f"{task.stem}.lock", "its lock file (heartbeat)"
    elif task.live:
        yield f".dibs/records/{task.stem}", "the claim's record (heartbeat)"


def _life(board: Board, known: TaskDetails) -> TaskDetails:
    events = board.log.of(known.task.id, _COUNTED)
    return known._replace(events=tuple(events[-KEPT:]), earlier=max(0, len(events) - KEPT))


def _file(root: str, name: str, what: str) -> TaskFile:
    path = os.path.join(root, name)
    try:
        return TaskFile(path, what, payload.size_of(os.lstat(path).st_size))
    except FileNotFoundError:
        return TaskFile(path, what, "missing")
    except OSError as error:
        return TaskFile(path, what, error.strerror or "cannot be read")
