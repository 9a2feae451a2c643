"""How the life of an id ends: purged, forgotten, and no fence granted twice after it.

A purge moves the one name that the id has to `past/`, so a life whose fence is there is over and
nothing has to be searched. Any other id that has no name was finished by a shell, or removed by
hand, and that only a search can say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs import names
from dibs.adding import (
    Life,
    draft_name,
    ended_life,
    latest_life,
    make_whole,
    past_fences,
    read_end,
    read_life,
)
from dibs.errors import (
    Changed,
    DibsError,
    Exists,
    StorageError,
    Uncertain,
    UnknownId,
    storage_error,
)
from dibs.journal import NOT_DONE
from dibs.names import AVAILABLE, FREE, Task
from dibs.scans import present, search
from dibs.store import GONE, NEW, PAST, tell

if TYPE_CHECKING:
    from dibs.store import Store

UNSEEN = 1_000_000
"""How far fences jump when an id vanished and nobody can say how far they had gone."""


class _Ending(NamedTuple):
    """A life that is about to be ended."""

    life: Life
    before: int | None
    """The highest fence of the lives before it; None where what told it was lost."""
    purged: int
    """The highest fence of the id that was purged; of this life where it is above `before`."""

    @property
    def over(self) -> bool:
        return self.before is not None and self.purged > self.before


def forget(store: Store, ident: str) -> None:
    """End the life of an id that no name carries any more, so that it can be added again."""
    names.escape(ident)
    for _, refusal in forget_each(store, [ident]):
        if refusal is not None:
            raise refusal


def forget_each(store: Store, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
    """The same for many, which share what has to be searched; what keeps each from being freed."""
    wanted = list(dict.fromkeys(idents))
    kept = dict(_forgotten(store, wanted))
    return [(ident, kept[ident]) for ident in wanted]


def _forgotten(store: Store, idents: list[str]) -> Iterator[tuple[str, DibsError | None]]:
    """Each with what became of it, in any order.

    The draft is looked for first: where there is none the payload was published, and then a
    search would see it.
    """
    store.ready()
    endings: dict[str, _Ending] = {}
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
    for ident, ending in endings.items():
        now = found.get(ident, ())
        if now:
            told = f"{ident!a} is still on the board: {tell(now)}"
            yield ident, Changed(told, now[0].name, now)
            continue
        fence = ending.purged
        if not ending.over:  # no name told how far this life's fences went
            fence = max(ending.before or 0, fence, fences.get(ident, 0)) + UNSEEN
        try:
            _end(store, ident, ending.life, fence)
        except DibsError as refusal:
            yield ident, refusal
        else:
            yield ident, None


def purged(store: Store, ident: str) -> bool:
    """Whether the life that an id is in ended with a purge."""
    life = latest_life(store, ident)
    if life is None:
        return False
    fence = past_fences(store).get(names.escape(ident), 0)
    return _Ending(life, _fence_before(store, ident, life), fence).over


def _ending(store: Store, ident: str, pasts: dict[str, int]) -> _Ending:
    """What is known of the life that an id is in; refused while it is being added."""
    life = latest_life(store, ident)
    if life is None:
        raise UnknownId(f"{ident!a} was never added here: {tell(store.find(ident))}")
    for state in (AVAILABLE, FREE):
        draft = draft_name(ident, state, life.nonce)
        if life.nonce and store.there(draft):
            raise Changed(f"{ident!a} is being added right now: {draft} is there", draft)
    return _Ending(life, _fence_before(store, ident, life), pasts.get(names.escape(ident), 0))


def _fence_before(store: Store, ident: str, life: Life) -> int | None:
    """The highest fence of the lives before; each life begins one above it."""
    if not life.number:
        return 0
    if life.nonce:
        return max(life.stamp.fence - 1, ended_life(store, ident, life.number - 1) or 0)
    return ended_life(store, ident, life.number - 1)


def _end(store: Store, ident: str, life: Life, fence: int) -> None:
    ends = [(n, f"{GONE}/{names.escape(ident)}.{n}") for n in range(life.number)]
    lost = [number for number, end in ends if not store.there(end)]
    if lost:  # else the id could never be added again
        write_ends(store, {ident: lost})
    make_whole(store, f"{GONE}/{names.escape(ident)}.{life.number}", f"{fence}\n".encode())
    store.sync(GONE)
    store.journal.write("forget", ident, "", "")


def write_ends(store: Store, lost: dict[str, list[int]]) -> None:
    """Write what ends lives, by their numbers, where it was lost or cannot be read.

    The life after says how far the fences of one went. Where it does not, they jump beyond
    whatever is known: too high an end costs nothing.
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


def _begun(store: Store, ident: str, number: int) -> Life | None:
    """That life, if its entry says at which fence it began."""
    life = read_life(store, ident, number)
    return life if life is not None and life.nonce else None


def _write_end(store: Store, path: str, fence: int) -> None:
    data = f"{fence}\n".encode()
    if make_whole(store, path, data) or read_end(store, path) is not None:
        return
    try:
        draft = f"{NEW}/{store.port.nonce()}"
        store.write(draft, data)
        store.port.rename(draft, path)
    except OSError as error:
        raise storage_error(error) from error


def purge(store: Store, task: Task) -> bool:
    """Remove the payload of a finished task for good; its id stays taken until it is forgotten.

    Its name becomes the note of its fence in one rename: a life that follows begins above it.
    """
    store.ready()
    past = f"{PAST}/{names.escape(task.id)}.f{task.fence}"
    with store.intent("purge", task):
        try:
            gone = _noted(store, task, past)
        except FileNotFoundError:
            gone = False
        except OSError as error:
            raise storage_error(error) from error
        if not gone:
            store.journal.write(NOT_DONE, task.id, task.name, "", "", "purge: it was gone")
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


def _noted(store: Store, task: Task, past: str) -> bool:
    """Let the finished task's name become its fence's note."""
    if store.port.stat(task.name).regular:
        try:
            return store.move(task.name, past, keep=True)
        except Exists:
            pass  # a copy of what was purged at this fence
    else:
        with suppress(FileExistsError):
            store.write(past, b"")
        store.sync(PAST, before="purging")
    store.port.unlink(task.name)
    return True


def empty(store: Store, past: str) -> None:
    """Let a note keep no payload: an empty file takes its place."""
    try:
        if store.port.stat(past).size:
            draft = f"{NEW}/{store.port.nonce()}"
            store.write(draft, b"")
            store.port.rename(draft, past)
    except OSError as error:
        raise storage_error(error) from error
