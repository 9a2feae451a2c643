"""The output and the result of the work on a claim: rows beside the task, under the claim's name.

The first half of the limit keeps the beginning. What follows is kept in pieces of at most a
quarter, and whatever begins before the last half is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.errors import NotExact, short
from dibs.model.outputs import KeptOutput, Output, check_log_bytes

if TYPE_CHECKING:
    from dibs.model.task import Task
    from dibs.postgres.sessions import Session


class OutputRows:
    """Keeps the beginning and the end of what the work on one claim prints."""

    def __init__(self, session: Session, task: Task, limit: int) -> None:
        self._session = session
        self._about = task.stem, names.escape(task.id), task.fence
        self._half, self._quarter = check_log_bytes(limit) // 2, limit // 4
        self._end = self._first = 0
        """How far the output was kept, and how much of that is the beginning."""
        self._in_first = True

    def keep(self, data: bytes, at: int) -> None:
        """Keep the output from offset `at` on; what was skipped before it is a gap."""
        self._in_first = self._in_first and at <= self._end
        self._end = at + len(data)
        if self._in_first:
            part = data[: self._half - self._first]
            self._write(part, at, tail=False)
            self._first += len(part)
            self._in_first = self._first < self._half
            data, at = data[len(part) :], at + len(part)
        spare = max(0, len(data) - 2 * self._quarter)
        data, at = data[spare:], at + spare
        while data:
            part = data[: self._quarter]
            self._write(part, at, tail=True)
            data, at = data[len(part) :], at + len(part)

    def _write(self, part: bytes, at: int, *, tail: bool) -> None:
        if part:
            oldest = at + len(part) - 2 * self._quarter
            self._session.step(
                "SELECT dibs.keep(%s, %s, %s, %s, %s, %s, %s)",
                (*self._about, at, tail, part, oldest),
                "the output",
            )


def read(session: Session, stem: str, since: int, last: int) -> Output | None:
    """What was kept of a claim's output from an offset on; None if nothing was ever kept."""
    rows = session.rows(
        "SELECT max(begins + length(data)) FROM dibs.output WHERE stem = %s", (stem,)
    )
    end = rows[0][0]
    if end is None:
        return None
    since = max(since, end - last)
    rows = session.rows(
        """
        SELECT begins, tail, data FROM dibs.output
        WHERE stem = %s AND begins + length(data) > %s AND begins < %s ORDER BY begins
        """,
        (stem, since, end),
    )
    parts: list[tuple[int, bool, bytearray]] = []
    for begins, tail, data in rows:
        skip = max(0, since - begins)
        at, piece = begins + skip, data[skip:]
        if parts and (before := parts[-1])[1] == tail and before[0] + len(before[2]) == at:
            before[2].extend(piece)
        else:
            parts.append((at, tail, bytearray(piece)))
    return Output(tuple((at, bytes(piece)) for at, _, piece in parts), max(since, end))


def kept(session: Session, ident: str) -> list[KeptOutput]:
    """The claims of an id whose output was kept, oldest first."""
    rows = session.rows(
        "SELECT stem, fence, max(at) FROM dibs.output WHERE eid = %s GROUP BY stem, fence",
        (names.escape(ident),),
    )
    found = [KeptOutput(*row) for row in rows]
    return sorted(found, key=lambda each: (each.attempt, each.at))


def result(session: Session, stem: str) -> bytes | None:
    """The result of the work on a claim; None if it has none."""
    rows = session.rows("SELECT data FROM dibs.result WHERE stem = %s", (stem,))
    return bytes(rows[0][0]) if rows else None


def stem_of(text: str) -> str:
    """The name of a claim without its state word; the claim need not exist."""
    task = names.read_any(names.exact(text)[0])
    if task is None or not task.claim:
        raise NotExact(f"{short(text)} is not the exact name of a claim")
    return task.stem
