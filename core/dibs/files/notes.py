"""The notes of holders: a file for each claim, beside its record and apart from its heartbeat.

A note proves nothing: a worker that hangs may still write notes from another thread. So a note is
no heartbeat, and no decision depends on it. The last one goes into the journal as the claim ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.files.board_files import NOTES
from dibs.model import names
from dibs.model.errors import DibsError
from dibs.model.outputs import NOTE_CHARS, Note, one_line

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles

_BYTES = 4 * NOTE_CHARS + 1


def write(store: BoardFiles, stem: str, text: str) -> None:
    """Replace the note of a claim by a complete file; an empty text removes it.

    The caller looks for the claim afterwards: one that has ended meanwhile leaves no note behind.
    """
    if not text:
        if store.keeps_notes():
            store.remove(f"{NOTES}/{stem}")
        return
    store.place(NOTES, stem, f"{text}\n".encode())
    store.note_kept()


def read(store: BoardFiles, stem: str) -> Note | None:
    """The last note of a claim; None if it has none, or if it cannot be read."""
    with suppress(OSError):
        data, stat = store.port.read(f"{NOTES}/{stem}", _BYTES)
        text = one_line(data.decode("utf-8", "replace"))[:NOTE_CHARS]
        return Note(text, stat.mtime) if text else None
    return None


def sweep(store: BoardFiles, live: Collection[str]) -> None:
    """Remove the notes of claims that have ended; `live` are the stems of some that exist.

    The exact names decide: a claim that was made after the listing has a note too.
    """
    for stem in store.ended(NOTES):
        if stem not in live and is_over(store, stem):
            store.drop(f"{NOTES}/{stem}")


def is_over(store: BoardFiles, stem: str) -> bool:
    """Whether this is the name of a claim that has ended: such a name never comes back."""
    task = names.read(f"{stem}.claimed")
    if task is None or not task.claim:
        return False
    return all(store.look(f"{stem}.{word}") is False for word in ("claimed", "held"))


class _KnownNote(NamedTuple):
    note: Note
    ino: int
    mtime: int


class NoteCache:
    """The last notes of all claims, for one reader; costs one `lstat` while there is no new one."""

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._folder: tuple[int, int] | None = None
        self._known: dict[str, _KnownNote] = {}

    def changed(self) -> bool:
        """Whether there may be new notes since the last call."""
        try:
            found = self._store.port.stat(NOTES)
        except OSError:
            found = None
        # Two notes within one tick of a coarse clock leave the folder's time the same.
        before, self._folder = self._folder, (found.ino, found.mtime) if found else None
        if found is None or not found.folder:
            self._known.clear()
            return before is not None
        young = self._store.clock.about() - found.mtime / 1e9 < 2.0
        return young or before != self._folder

    def look(self, stems: Iterable[str]) -> dict[str, Note]:
        """The notes of these claims now."""
        store, known = self._store, self._known
        found: dict[str, Note] = {}
        with suppress(DibsError):
            listed = set(store.ended(NOTES)) if store.check_folder(NOTES) else set()
            for stem in known.keys() - listed:
                del known[stem]
            for stem in stems:
                if stem not in listed:
                    continue
                with suppress(OSError):
                    stat, cached = store.port.stat(f"{NOTES}/{stem}"), known.get(stem)
                    if cached is None or (stat.ino, stat.mtime) != cached[1:]:
                        note = read(store, stem)
                        if note is None:
                            continue
                        cached = _KnownNote(note, stat.ino, stat.mtime)
                    known[stem] = cached
                    found[stem] = cached.note
        return found
