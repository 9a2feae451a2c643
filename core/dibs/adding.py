"""The lives of an id: add it, end a life, and never grant a fence twice.

`known/<id>.<k>` says that the id was added for the k-th time and by which nonce; `gone/<id>.<k>`
that this life is over and how far its fences went. Both are made whole and never removed.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, NamedTuple

from dibs import names
from dibs.clock import SECOND
from dibs.errors import BadName, Exists, StorageError, Uncertain, storage_error
from dibs.names import AVAILABLE, FREE, Stamp, Task
from dibs.store import GONE, KNOWN, KNOWN_LOST, NEW, PAST, PATIENCE, tell

if TYPE_CHECKING:
    from dibs.store import Store

DRAFT_AGE = 3600
"""Seconds after which a file in `new/` is taken for a dead adder's; an adder gives up at half."""
PIECE = 1 << 20
"""Bytes of a payload that are in memory at once, where it comes from a file."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES)
_match_life = re.compile(r"([0-9A-F]{10}) (f[0-9ap]+)\n?").fullmatch
match_draft = re.compile(r"([A-Za-z0-9_=-]+)\.(task|lock)\.([0-9A-F]{10})").fullmatch
"""A name in `new/` as `draft_name` makes it: the escaped id, the kind, the nonce."""


class Life(NamedTuple):
    """One of an id's lives, as `known/` tells it."""

    number: int
    nonce: str
    stamp: Stamp


def add(
    store: Store, ident: str, payload: bytes | IO[bytes], priority: int, state: str = AVAILABLE
) -> Task:
    """Publish a payload under an id that was never there, or was forgotten since."""
    names.check_priority(priority)
    names.escape(ident)
    if not isinstance(payload, (bytes, bytearray)) and not hasattr(payload, "read"):
        raise BadName(f"a payload must be bytes, got {type(payload).__name__}: encode it")
    store.ready()
    port = store.port
    start = port.boottime()
    if offered := _offered(store, ident):
        raise _exists(store, ident, offered)
    _refuse_lost(store)
    nonce = port.nonce()
    draft = draft_name(ident, state, nonce)
    try:
        _write(store, draft, _pieces(payload))
    except OSError as error:
        raise storage_error(error) from error
    try:
        life = _begin(store, ident, nonce, priority)
    except Exists:
        store.drop(draft)
        raise
    name = names.waiting_name(ident, life.stamp, state)
    try:
        store.sync(KNOWN, before="publishing")
        published = publish(store, draft, name)
    except Exists:
        if _withdrawn(store, draft):
            raise
        published = False
    except StorageError as error:
        raise Uncertain(f"{error}; the id is taken, and a janitor will publish {draft}") from error
    if not published and port.boottime() - start > DRAFT_AGE // 2 * SECOND:
        raise Uncertain(
            f"adding {ident!a} took so long that a janitor may have removed it: "
            f"look with `dibs show`, and add it under another id if it is not there"
        )
    store.sync(name.rpartition("/")[0])
    store.journal.write("add", ident, "", name)
    task = names.read_any(name)
    assert task is not None
    return task


def _pieces(payload: bytes | IO[bytes]) -> Iterator[bytes]:
    """The payload in pieces that fit the memory; what is given as bytes is one."""
    if isinstance(payload, (bytes, bytearray)):
        yield payload
        return
    try:
        while piece := payload.read(PIECE):
            if not isinstance(piece, bytes):
                raise BadName("a payload must be bytes: open its file with mode 'rb'")
            yield piece
    except OSError as error:
        what = getattr(payload, "name", "the payload")
        raise BadName(f"{what}: {error.strerror}: give a file that can be read") from error


def _write(store: Store, draft: str, pieces: Iterator[bytes]) -> None:
    """Write a payload of any length; where that fails, nothing stays.

    Pieces may come so slowly that a janitor takes the draft for a dead adder's: then the next one
    would begin another file, so what is published must have the length of what was written.
    """
    sync = store.settings.durability != "off"
    first, second = next(pieces, b""), next(pieces, b"")
    try:
        store.port.create(draft, first, sync=sync and not second)
    except FileNotFoundError:
        store.make_folders()
        _refuse_lost(store)
        store.port.create(draft, first, sync=sync and not second)
    if not second:
        return
    size = len(first)
    try:
        while second:
            store.port.append(draft, second)
            size += len(second)
            second = next(pieces, b"")
        if sync:
            store.port.sync(draft)
        if store.port.stat(draft).size != size:
            raise StorageError(f"{draft} was removed because its payload came slowly: add it again")
    except BaseException:  # Ctrl+C as well: half a payload is worse than none
        store.drop(draft)
        raise


def publish(store: Store, draft: str, name: str) -> bool:
    """Move a draft whose nonce is in `known/` to its place; False when somebody did already.

    What a shell offered or claimed under that id is looked for by its exact names: the next
    plain worker's `mv` would overwrite a claim.
    """
    task = names.read_any(name)
    assert task is not None
    offered = _offered(store, task.id)
    if offered and not store.there(draft):
        return False  # it may be this very task
    if offered:
        raise Exists(f"{offered} is there already")
    try:
        return store.move(draft, name, keep=True)
    except Exists:
        raise Exists(f"{name} is there already") from None


def _offered(store: Store, ident: str) -> str:
    """The name under which a shell has offered or claimed an id; empty where it has not."""
    for begin in names.spellings(ident):
        for other in (f"{begin}claimed", f"{begin}{AVAILABLE}"):
            if store.there(other):
                return other
    return ""


def _withdrawn(store: Store, draft: str) -> bool:
    """Remove the payload of an add that is refused, so that no janitor publishes it later.

    False where it is gone already: somebody has published it. That an unlink's lost reply could
    not tell, so it is renamed to a name with a nonce first.
    """
    aside = f"{NEW}/{store.port.nonce()}"
    withdrawn = store.move(draft, aside)
    store.drop(aside)
    return withdrawn


def adopt(store: Store, task: Task) -> None:
    """Note that the id of a waiting task is known; one that was added is known already.

    It is not where a shell offered it, and where its entry was lost. A fence says that there may
    have been lives before: then the entry of the life that it is in counts.
    """
    if not _note(store, task.id, 0) or not task.fence:
        return
    number = 0
    while store.there(f"{GONE}/{names.escape(task.id)}.{number}"):
        number += 1
    _note(store, task.id, number)


def _note(store: Store, ident: str, number: int) -> bool:
    """Make an empty entry; False where there is one."""
    try:
        store.write(f"{KNOWN}/{names.escape(ident)}.{number}", b"")
    except FileExistsError:
        return False
    except OSError as error:
        raise storage_error(error) from error
    return True


def draft_name(ident: str, state: str, nonce: str) -> str:
    """Where a payload lies before it is published."""
    kind = "lock" if state == FREE else "task"
    return f"{NEW}/{names.escape(ident)}.{kind}.{nonce}"


def _begin(store: Store, ident: str, nonce: str, priority: int) -> Life:
    """Begin the id's next life: the first free number, and only if the life before is over."""
    eid, number, fence = names.escape(ident), 0, 0
    while True:
        gone = ended_life(store, ident, number)  # its entry in `known/` may have been lost
        if gone is None:
            if number:
                _refuse_beside(store, ident, number)
                fence = max(fence, past_fences(store).get(eid, 0))  # of a life whose entry was lost
            stamp = Stamp(fence + 1 if number else 0, 0, priority)
            path = f"{KNOWN}/{eid}.{number}"
            if make_whole(store, path, f"{nonce} {stamp.full()}\n".encode()):
                return Life(number, nonce, stamp)
            life = read_life(store, ident, number)
            if life is not None and life.nonce == nonce:
                return life
            gone = ended_life(store, ident, number)
        if gone is None:
            raise _exists(store, ident)
        number, fence = number + 1, max(fence, gone)


def past_fences(store: Store) -> dict[str, int]:
    """The highest fence at which each id was purged, by its escaped form."""
    found: dict[str, int] = {}
    for name in store.ended(PAST):
        eid, _, fence = name.rpartition(".f")
        if fence.isascii() and fence.isdigit() and len(fence) < 18:
            found[eid] = max(found.get(eid, 0), int(fence))
    return found


def _refuse_lost(store: Store) -> None:
    """Add nothing while nobody can say which ids were added before."""
    if store.there(KNOWN_LOST):
        raise StorageError(
            f"{KNOWN} was lost, so nothing can be added: "
            "`dibs check --repair` finds out which ids were used"
        )


def _refuse_beside(store: Store, ident: str, number: int) -> None:
    """Begin no later life beside a name of it: the entry that says so was lost."""
    others = store.beside.of(Task("", ident, AVAILABLE, *Stamp(), ""))
    if others:
        _note(store, ident, number)
        raise Exists(f"the id {ident!a} exists: {tell(others)}")


def _exists(store: Store, ident: str, offered: str = "") -> Exists:
    """The refusal of an id that is in use, or was; or whose text stands for another one's name."""
    other = names.read(offered)
    if other is not None and other.id != ident:
        return Exists(
            f"the id {other.id!a} exists: {tell([other])}; "
            f"its name begins with {ident!a}, so that cannot be added beside it"
        )
    found = store.find(ident)
    free = "" if found else ": if it is over, `dibs forget` frees it"
    return Exists(f"the id {ident!a} exists: {tell(found)}{free}")


def make_whole(store: Store, path: str, data: bytes) -> bool:
    """Create a file that nobody ever sees half-written; False where the name is taken.

    The finished temporary is linked. An error may hide that the link was made, so the caller
    reads what is there; one that stays is raised as nobody being able to tell.
    """
    port = store.port
    until = port.boottime() + PATIENCE
    while True:
        draft = f"{NEW}/{port.nonce()}"
        try:
            store.write(draft, data)
            try:
                port.link(draft, path)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                port.create(path, data)
            return True
        except FileExistsError:
            return False
        except OSError as error:
            if store.look(path):
                return False
            if error.errno == errno.ENOENT:
                store.make_folders()
                _refuse_lost(store)
            if error.errno in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT):
                raise storage_error(error) from error
            if port.boottime() >= until:
                raise Uncertain(
                    f"{path}: {error.strerror}: cannot tell whether it was made"
                ) from error
            port.sleep(0.05)
        finally:
            store.drop(draft)


def read_life(store: Store, ident: str, number: int) -> Life | None:
    """What `known/` says of that life; None where nothing sound is there.

    Nothing in it means that the id was offered by a shell.
    """
    try:
        data = store.port.read(f"{KNOWN}/{names.escape(ident)}.{number}", 256)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise storage_error(error) from error
    if not data:
        return Life(number, "", Stamp())
    m = _match_life(data.decode("ascii", "replace"))
    stamp = names.read_stamp(m[2]) if m else None
    return Life(number, m[1], stamp) if m and stamp else None


def ended_life(store: Store, ident: str, number: int) -> int | None:
    """The highest fence of a forgotten life; None while it is not forgotten."""
    path = f"{GONE}/{names.escape(ident)}.{number}"
    try:
        fence = read_end(store, path)
    except FileNotFoundError:
        return None
    if fence is None:
        raise Exists(
            f"{path} does not hold a fence, so the id cannot be added again: "
            "`dibs check --repair` writes it again"
        )
    return fence


def read_end(store: Store, path: str) -> int | None:
    """The fence that an entry in `gone/` holds; None where it is not sound."""
    try:
        data = store.port.read(path, 64)[0]
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error) from error
    text = data.decode("ascii", "replace").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,17}", text) else None


def latest_life(store: Store, ident: str) -> Life | None:
    """The life that an id is in, forgotten or not; None where it was never added by dibs."""
    number = 0
    eid = names.escape(ident)
    while any(store.there(f"{folder}/{eid}.{number + 1}") for folder in (KNOWN, GONE)):
        number += 1
    return read_life(store, ident, number)
