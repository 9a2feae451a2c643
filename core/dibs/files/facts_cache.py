"""Cache the facts of every claim, so that a beat costs two `lstat` calls.

A beat changes only a time. So a reader that follows many claims does not have to open their
records again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs.files.board_files import RECORDS
from dibs.files.facts import Facts, facts_of
from dibs.model.errors import storage_error

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.task import Task


class _Known(NamedTuple):
    facts: Facts
    ino: int
    """The inode of the record or the shell claim's lock; 0 if there is none."""
    size: int


class FactsCache:
    """The last known facts of each claim, for one reader."""

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}

    def look(self, task: Task) -> Facts | None:
        """The claim's facts now; None when its name is gone."""
        known = self._known.get(task.name)
        facts = self._renewed(known, task) if known is not None else None
        if facts is not None:
            return facts
        found = facts_of(self._store, task)
        if found is None:
            self.forget(task.name)
            return None
        ino, size, _, _ = self._beside(task)
        self._known[task.name] = _Known(found, ino, size)
        return found

    def forget(self, name: str) -> None:
        """The claim is over."""
        self._known.pop(name, None)

    def _renewed(self, known: _Known, task: Task) -> Facts | None:
        """The known facts with the current times; None if more than a time has changed."""
        facts = known.facts
        try:
            stat = self._store.port.stat(task.name)
        except OSError:
            return None
        since = stat.ctime if self._store.rename_moves_ctime else max(stat.ctime, stat.mtime)
        if (stat.ino, stat.mtime, since) != (facts.ino, facts.mtime, facts.since):
            return None
        ino, size, mtime, ctime = self._beside(task)
        if (ino, size) != (known.ino, known.size):
            return None
        if task.is_shell_claim:
            beat, pulse = max(since, mtime), since + mtime
            facts = facts._replace(beat=beat, pulse=pulse, lock_mtime=mtime, latest=beat)
        else:
            beat = mtime if ino else since
            latest = max(beat, ctime)
            if (beat, latest) == (facts.beat, facts.latest):
                return facts
            facts = facts._replace(beat=beat, pulse=beat, latest=latest)
        self._known[task.name] = known._replace(facts=facts)
        return facts

    def _beside(self, task: Task) -> tuple[int, int, int, int]:
        """Inode, size, mtime and ctime of the file that is beaten; zeros if it is missing."""
        path = f"{task.stem}.lock" if task.is_shell_claim else f"{RECORDS}/{task.stem}"
        try:
            stat = self._store.port.stat(path)
        except FileNotFoundError:
            return 0, 0, 0, 0
        except OSError as error:
            raise storage_error(error) from error
        return stat.ino, stat.size, stat.mtime, stat.ctime
