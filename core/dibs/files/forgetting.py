"""End the life of an id by purging or forgetting it, so that no fence is given out twice.

A purge moves the only name of an id to `past/`. If the fence of a life is there, the life is over
and nothing has to be searched. Any other id without a name was finished by a shell worker or
removed by hand, and only a search can show that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.files import moves, outputs
from dibs.files.board_files import GONE, NEW, PAST
from dibs.files.lives import (
    Life,
    create_atomically,
    draft_name,
    ended_life,
    latest_life,
    past_fences,
    read_end,
    read_life,
)
from dibs.files.questions import remove
from dibs.files.scans import present, search
from dibs.model import names
from dibs.model.errors import (
    Changed,
    DibsError,
    Exists,
    StorageError,
    Uncertain,
    UnknownId,
    storage_error,
)
from dibs.model.events import NOT_DONE
from dibs.model.task import AVAILABLE, DONE, FREE, Task, describe

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles

UNSEEN = 1_000_000
"""How far fences jump when an id has vanished and its highest fence is unknown."""


class _EndingLife(NamedTuple):
    """A life that is about to be ended."""

    life: Life
    before: int | None
    """The highest fence of the lives before it; None if that information was lost."""
    purged: int
    """The highest fence at which the id was purged; in this life if it is above `before`."""

    @property
    def over(self) -> bool:
        return self.before is not None and self.purged > self.before


def forget(store: BoardFiles, ident: str) -> None:
    """End the life of an id that has no name on the board, so that it can be added again."""
    names.escape(ident)
    for _, refusal in forget_each(store, [ident]):
        if refusal is not None:
            raise refusal


def forget_each(store: BoardFiles, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
    """The same for many ids with one search; returns each with the reason why it is not free."""
    wanted = list(dict.fromkeys(idents))
    kept = dict(_forgotten(store, wanted))
    return [(ident, kept[ident]) for ident in wanted]


def _forgotten(store: BoardFiles, idents: list[str]) -> Iterator[tuple[str, DibsError | None]]:
    """Each id with its result, in any order.

    The draft is looked for before the search: if there is none, the payload has been published,
    and the search finds it.
    """
    store.ready()
    endings: dict[str, _EndingLife] = {}
    pasts = past_fences(store)
    for ident in idents:
        try:
            endings[ident] = _ending(store, ident, pasts)
        except DibsError as refusal:
            yield ident, refusal
    unseen = [ident for ident, ending in endings.items() if not ending.over]
    found = search(store, unseen) | present(store, [i for i, end in endings.items() if end.over])
    lost = [ident for ident in unseen if not found.get(ident)]
    fences = store.journal.highest_fences(lost) if lost else {}
    over: dict[str, int] = {}
    for ident, ending in endings.items():
        now = found.get(ident, ())
        if now:
            text = f"{ident!r} is still on the board: {describe(now)}"
            if {task.state for task in now} == {DONE}:
                text += "; `dibs purge --done --older-than AGE` removes done tasks, then try again"
            yield ident, Changed(text, now[0].name, now)
            continue
        fence = ending.purged
        if not ending.over:  # no name shows how high this life's fences were
            fence = max(ending.before or 0, fence, fences.get(ident, 0)) + UNSEEN
        try:
            _end(store, ident, ending.life, fence)
        except DibsError as refusal:
            yield ident, refusal
        else:
            over[ident] = fence
            yield ident, None
    if over:
        with suppress(StorageError):
            outputs.forget(store, over)


def purged(store: BoardFiles, ident: str) -> bool:
    """Whether the latest life of an id ended with a purge."""
    life = latest_life(store, ident)
    if life is None:
        return False
    fence = past_fences(store).get(names.escape(ident), 0)
    return _EndingLife(life, _fence_before(store, ident, life), fence).over


def _ending(store: BoardFiles, ident: str, pasts: dict[str, int]) -> _EndingLife:
    """What is known of the latest life of an id; raises while it is being added."""
    life = latest_life(store, ident)
    if life is None:
        raise UnknownId(f"{ident!r} was never added here: {describe(store.find(ident))}")
    for state in (AVAILABLE, FREE):
        draft = draft_name(ident, state, life.nonce)
        if life.nonce and store.there(draft):
            raise Changed(
                f"{ident!r} is not on the board yet: an add of it was interrupted, or is still "
                f"running; `dibs reap` publishes {draft}",
                draft,
            )
    return _EndingLife(life, _fence_before(store, ident, life), pasts.get(names.escape(ident), 0))


def _fence_before(store: BoardFiles, ident: str, life: Life) -> int | None:
    """The highest fence of the earlier lives; each life begins one above it."""
    if not life.number:
        return 0
    if life.nonce:
        return max(life.stamp.fence - 1, ended_life(store, ident, life.number - 1) or 0)
    return ended_life(store, ident, life.number - 1)


def _end(store: BoardFiles, ident: str, life: Life, fence: int) -> None:
    ends = [(n, f"{GONE}/{names.escape(ident)}.{n}") for n in range(life.number)]
    lost = [number for number, end in ends if not store.there(end)]
    if lost:  # without them the id could never be added again
        write_ends(store, {ident: lost})
    create_atomically(store, f"{GONE}/{names.escape(ident)}.{life.number}", f"{fence}\n".encode())
    store.sync(GONE)
    store.journal.write("forget", ident, "", "")
    with suppress(StorageError):  # what could not be removed does no harm
        remove(store, {names.escape(ident): fence})


def write_ends(store: BoardFiles, lost: dict[str, list[int]]) -> None:
    """Write the entries in `gone/` that were lost or are invalid, by the numbers of the lives.

    The entry of the next life shows the highest fence of a life. Without it, the fence jumps above
    everything that is known: a number that is too high does no harm.
    """
    pasts = past_fences(store)
    unknown = [i for i, numbers in lost.items() for n in numbers if not _begun(store, i, n + 1)]
    highest = store.journal.highest_fences(unknown) if unknown else {}
    for ident, numbers in lost.items():
        for number in sorted(numbers):
            after, life = _begun(store, ident, number + 1), _begun(store, ident, number)
            fence = after.stamp.fence - 1 if after else 0
            if not after:
                seen = [life.stamp.fence] if life else []
                seen += [task.fence for task in store.find(ident)]
                if number:
                    seen.append(ended_life(store, ident, number - 1) or 0)
                seen += [pasts.get(names.escape(ident), 0), highest.get(ident, 0)]
                fence = max(seen) + UNSEEN
            _write_end(store, f"{GONE}/{names.escape(ident)}.{number}", fence)
    store.sync(GONE)


def _begun(store: BoardFiles, ident: str, number: int) -> Life | None:
    """That life, if its entry contains the fence at which it began."""
    life = read_life(store, ident, number)
    return life if life is not None and life.nonce else None


def _write_end(store: BoardFiles, path: str, fence: int) -> None:
    data = f"{fence}\n".encode()
    if create_atomically(store, path, data) or read_end(store, path) is not None:
        return
    try:
        draft = f"{NEW}/{store.port.nonce()}"
        store.write(draft, data)
        store.port.rename(draft, path)
    except OSError as error:
        raise storage_error(error) from error


def purge(store: BoardFiles, task: Task) -> bool:
    """Remove the payload of a finished task; its id stays in use until it is forgotten.

    One rename turns its name into the note of its fence, so a later life begins above it.
    """
    store.ready()
    past = f"{PAST}/{names.escape(task.id)}.f{task.fence}"
    with moves.intent(store, "purge", task):
        try:
            gone = _noted(store, task, past)
        except FileNotFoundError:
            gone = False
        except OSError as error:
            raise storage_error(error) from error
        if not gone:
            store.journal.write(NOT_DONE, task.id, task.name, "", "", "purge: it was already gone")
            return False
        store.journal.write("purge", task.id, task.name, "")
        store.sync(PAST)
        try:
            empty(store, past)
        except StorageError as error:
            raise Uncertain(
                f"{task.name} is purged, but its payload is still in {past} ({error}): "
                "`dibs check --repair` removes it"
            ) from error
    return True


def _noted(store: BoardFiles, task: Task, past: str) -> bool:
    """Turn the finished task's name into the note of its fence."""
    if store.port.stat(task.name).regular:
        try:
            return moves.move(store, task.name, past, keep=True)
        except Exists:
            pass  # a copy of the task was purged at this fence
    else:
        with suppress(FileExistsError):
            store.write(past, b"")
        store.sync(PAST, before="purging")
    store.port.unlink(task.name)
    return True


def empty(store: BoardFiles, past: str) -> None:
    """Remove the payload from a note by putting an empty file in its place."""
    try:
        if store.port.stat(past).size:
            draft = f"{NEW}/{store.port.nonce()}"
            store.write(draft, b"")
            store.port.rename(draft, past)
    except OSError as error:
        raise storage_error(error) from error
