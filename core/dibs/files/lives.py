"""The lives of an id: add it, end a life, and never give out a fence twice.

`known/<id>.<k>` records that the id was added for the k-th time, and by which nonce.
`gone/<id>.<k>` records that this life is over, and its highest fence. Both are created complete
and are never removed.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from dibs.files import moves
from dibs.files.board_files import GONE, KNOWN, KNOWN_LOST, NEW, PAST, PATIENCE
from dibs.model import delays, names
from dibs.model.errors import BadName, DibsError, Exists, StorageError, Uncertain, storage_error
from dibs.model.refusals import exists, not_there
from dibs.model.safe_text import command
from dibs.model.sample import SECOND
from dibs.model.slots import refuse_slot
from dibs.model.task import AVAILABLE, FREE, Stamp, Task, describe

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles

DRAFT_AGE = 3600
"""Seconds after which a file in `new/` counts as abandoned; an adder gives up at half of it."""
_MARKED = 6
"""So many digits of a nonce are those of the mark, if one is given; the others are of this call."""
PIECE = 1 << 20
"""How many bytes of a payload from a file are in memory at a time."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES)
_match_life = re.compile(r"([0-9A-F]{10}) (f[0-9apn]+)\n?").fullmatch
match_draft = re.compile(r"([A-Za-z0-9_=-]+)\.(task|lock)\.([0-9A-F]{10})").fullmatch
"""A name in `new/` as `draft_name` makes it: the escaped id, the kind, the nonce."""


class Life(NamedTuple):
    """One life of an id, as its entry in `known/` describes it."""

    number: int
    nonce: str
    stamp: Stamp


def start_of(store: BoardFiles, start_in: float, start_at: float | None) -> int:
    """When a new task starts, in unix seconds; 0 for at once, also if that time is past."""
    if start_at is not None and start_in:
        raise BadName("a task starts at a time or after a delay: give one of them")
    if start_at is None and not delays.check_delay(start_in, names.NOT_BEFORE_MAX):
        return 0
    at = None if start_at is None else delays.check_start(start_at)
    store.ready()
    now = store.clock.now().fs
    if at is None:
        return delays.start_after(now, start_in, now)
    return at if at * SECOND > now else 0


def add(
    store: BoardFiles,
    ident: str,
    payload: bytes | IO[bytes],
    priority: int,
    state: str = AVAILABLE,
    not_before: int = 0,
    by: str = "",
    mark: str = "",
) -> Task:
    """Publish a payload under an id that was never used, or was forgotten since.

    With `not_before`, in unix seconds, it is published as a later task. If an add with the same
    `mark` has published it before, it is the same add.
    """
    names.check_priority(priority)
    names.check_text("who acts", by)
    names.escape(ident)
    if state == AVAILABLE:
        refuse_slot(ident)
    if not isinstance(payload, (bytes, bytearray)) and not hasattr(payload, "read"):
        raise BadName(f"a payload must be bytes, got {type(payload).__name__}: encode it")
    store.ready()
    port = store.port
    start = port.boottime()
    if mark:
        names.check_nonce(mark)
    if offered := _offered(store, ident):
        if (before := _added_before(store, ident, state, mark)) is not None:
            return before
        raise _exists(store, ident, offered)
    _refuse_lost(store)
    nonce = mark[:_MARKED] + port.nonce()[len(mark[:_MARKED]) :]
    draft = draft_name(ident, state, nonce)
    try:
        _write(store, draft, _pieces(payload))
    except OSError as error:
        raise storage_error(error) from error
    try:
        life = _begin(store, ident, nonce, priority, not_before)
    except Exists:
        store.drop(draft)
        if (before := _added_before(store, ident, state, mark)) is not None:
            return before
        if complete(store, ident):
            raise _exists(store, ident, earlier=True) from None
        raise
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            store.drop(draft)  # certainly not begun, and an empty file per call would fill `new/`
        raise
    name = names.unclaimed_name(ident, life.stamp, state)
    try:
        store.sync(KNOWN, before="publishing")
        published = publish(store, draft, name)
    except Exists:
        if _withdrawn(store, draft):
            raise
        published = False
    except StorageError as error:
        raise Uncertain(
            f"{error}; {ident!r} is not on the board yet: the next add of it, `dibs reap` "
            f"or an idle worker publishes {draft}"
        ) from error
    if not published and port.boottime() - start > DRAFT_AGE // 2 * SECOND:
        raise Uncertain(
            f"adding {ident!r} took so long that a janitor may have removed it: "
            f"look with `{command('show', ident)}`, and add it under another id if it is missing"
        )
    store.sync(name.rpartition("/")[0])
    if published:  # else the process that published it has written the line
        store.journal.write("add", ident, "", name, by)
    task = names.read_any(name)
    assert task is not None
    return task


def _added_before(store: BoardFiles, ident: str, state: str, mark: str) -> Task | None:
    """The task that an add with this mark has published, by its nonce and by the log.

    Each call has a nonce of its own, so that no draft is that of two calls.
    """
    life = latest_life(store, ident) if mark else None
    if life is None or life.nonce[:_MARKED] != mark[:_MARKED]:
        return None
    with suppress(DibsError):  # `check` reports why it cannot be published
        complete(store, ident)
    name = names.unclaimed_name(ident, life.stamp, state)
    events = store.journal.of(ident)
    return names.read_any(name) if any((e.verb, e.dst) == ("add", name) for e in events) else None


def complete_all(store: BoardFiles) -> bool:
    """Publish the payloads of all interrupted adds; True if there was one."""
    idents = []
    for entry in store.ended(NEW):
        m = match_draft(entry)
        task = names.read(f"{m[1]}.{AVAILABLE}") if m else None
        if task is not None:
            idents.append(task.id)
    done = False
    for ident in idents:
        with suppress(DibsError):  # `check` reports it
            done = complete(store, ident) or done
    return done


def complete(store: BoardFiles, ident: str) -> bool:
    """Publish the payload of an interrupted add of this id; False if there is none.

    Its nonce in `known/` makes that safe even while its adder is alive: the payload is complete,
    and one rename publishes it, whoever does it.
    """
    found = unpublished(store, ident)
    if found is None:
        return False
    life, state = found
    publish_begun(store, ident, life, state)
    return True


def unpublished(store: BoardFiles, ident: str) -> tuple[Life, str] | None:
    """The latest life of an id and its state, if it has begun and its payload is in `new/`."""
    life = latest_life(store, ident)
    if life is not None and life.nonce:
        for state in (AVAILABLE, FREE):
            if store.there(draft_name(ident, state, life.nonce)):
                return life, state
    return None


def publish_begun(store: BoardFiles, ident: str, life: Life, state: str) -> None:
    """Publish the payload of a life that has begun, for its adder."""
    draft = draft_name(ident, state, life.nonce)
    if found := store.find(ident):  # the draft is from an older copy, or is published by now
        if store.there(draft):
            raise Exists(
                f"{draft} was not published: {ident!r} exists, {describe(found)}; "
                "it may be from an older copy: move it away"
            )
        return
    name = names.unclaimed_name(ident, life.stamp, state)
    store.sync(KNOWN, before="publishing")
    if publish(store, draft, name):
        store.sync(name.rpartition("/")[0])
        store.journal.write("add", ident, "", name, "", "published for an add that was interrupted")


def why_missing(store: BoardFiles, ident: str) -> str:
    """Why no name on the board has this id, and what to do, in one line."""
    if found := unpublished(store, ident):
        return _unpublished_text(ident, *found)
    return not_there(ident)


def _unpublished_text(ident: str, life: Life, state: str) -> str:
    return (
        f"{ident!r} is not on the board yet: an add of it was interrupted, or is still running; "
        f"`dibs reap` publishes {draft_name(ident, state, life.nonce)}"
    )


def _pieces(payload: bytes | IO[bytes]) -> Iterator[bytes]:
    """The payload in pieces that fit into memory; bytes are one piece."""
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


def _write(store: BoardFiles, draft: str, pieces: Iterator[bytes]) -> None:
    """Write a payload of any length; on failure, leave nothing.

    If the pieces come very slowly, a janitor may remove the draft as abandoned, and the next piece
    would start a new file. So the length is checked before the payload is published.
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
    except BaseException:  # Ctrl+C as well: a partial payload must never be published
        store.drop(draft)
        raise


def publish(store: BoardFiles, draft: str, name: str) -> bool:
    """Move a draft whose nonce is in `known/` to its place; False if that has been done already.

    First the names that a shell worker could have given this id are checked, because the next
    shell worker's `mv` would overwrite a claim.
    """
    task = names.read_any(name)
    assert task is not None
    offered = _offered(store, task.id)
    if offered and not store.there(draft):
        return False  # it may be this same task
    if offered:
        raise Exists(f"{offered} already exists")
    try:
        return moves.move(store, draft, name, keep=True)
    except Exists:
        raise Exists(f"{name} already exists") from None


def _offered(store: BoardFiles, ident: str) -> str:
    """The name under which a shell worker has added or claimed an id; empty if there is none."""
    for begin in names.spellings(ident):
        for other in (f"{begin}claimed", f"{begin}{AVAILABLE}"):
            if store.there(other):
                return other
    return ""


def _withdrawn(store: BoardFiles, draft: str) -> bool:
    """Remove the payload of a refused add, so that no janitor publishes it later.

    False if it is gone, which means that it was published. The reply of an unlink could be lost,
    so the draft is renamed to a name with a nonce first.
    """
    aside = f"{NEW}/{store.port.nonce()}"
    withdrawn = moves.move(store, draft, aside)
    store.drop(aside)
    return withdrawn


def draft_name(ident: str, state: str, nonce: str) -> str:
    """The path of a payload before it is published."""
    kind = "lock" if state == FREE else "task"
    return f"{NEW}/{names.escape(ident)}.{kind}.{nonce}"


def _begin(store: BoardFiles, ident: str, nonce: str, priority: int, not_before: int = 0) -> Life:
    """Begin the id's next life with the first free number, if its previous life is over."""
    eid, number, fence = names.escape(ident), 0, 0
    while True:
        gone = ended_life(store, ident, number)  # its entry in `known/` may have been lost
        if gone is None:
            if number:
                _refuse_beside(store, ident, number)
                fence = max(fence, past_fences(store).get(eid, 0))  # the life's entry may be lost
            stamp = Stamp(fence + 1 if number else 0, 0, priority, not_before=not_before)
            path = f"{KNOWN}/{eid}.{number}"
            if create_atomically(store, path, f"{nonce} {names.spell_stamp(stamp)}\n".encode()):
                return Life(number, nonce, stamp)
            life = read_life(store, ident, number)
            if life is not None and life.nonce == nonce:
                return life
            gone = ended_life(store, ident, number)
        if gone is None:
            raise _exists(store, ident)
        number, fence = number + 1, max(fence, gone)


def past_fences(store: BoardFiles) -> dict[str, int]:
    """The highest fence at which each id was purged, by its escaped form."""
    found: dict[str, int] = {}
    for name in store.ended(PAST):
        eid, _, fence = name.rpartition(".f")
        if fence.isascii() and fence.isdigit() and len(fence) < 18:
            found[eid] = max(found.get(eid, 0), int(fence))
    return found


def _refuse_lost(store: BoardFiles) -> None:
    """Refuse to add anything while the list of used ids is lost."""
    if store.there(KNOWN_LOST):
        raise StorageError(
            f"{KNOWN} was lost, so nothing can be added: "
            "run `dibs check --repair`, which finds out which ids were used"
        )


def _refuse_beside(store: BoardFiles, ident: str, number: int) -> None:
    """Refuse a later life if the id has a name on the board: its entry was lost."""
    others = store.id_index.of(Task("", ident, AVAILABLE, 0, 0, 5, ""))
    if others:
        store.note_known(ident, number)
        raise Exists(f"the id {ident!r} exists: {describe(others)}")


def _exists(store: BoardFiles, ident: str, offered: str = "", *, earlier: bool = False) -> Exists:
    """The error for an id that is or was in use, or whose text begins another id's shell name.

    `earlier`: this call has published the payload of an earlier add of the same id.
    """
    other = names.read(offered)
    if other is not None and other.id != ident:
        return Exists(
            f"the id {other.id!r} exists: {describe([other])}; "
            f"its name begins with {ident!r}, so {ident!r} cannot be added"
        )
    found = store.find(ident)
    if earlier:
        free = "; its payload is that of an earlier add, which was interrupted or is still running"
        return Exists(f"the id {ident!r} exists: {describe(found)}{free}")
    if not found and (left := unpublished(store, ident)):
        return Exists(f"the id {ident!r} exists: {_unpublished_text(ident, *left)}")
    return exists(ident, found)


def create_atomically(store: BoardFiles, path: str, data: bytes) -> bool:
    """Create a file that is never seen incomplete; False if the name is taken.

    The complete temporary file is linked to the name. An error may hide that the link was made,
    so the caller reads what is there. A lasting error is raised as `Uncertain`.
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
                store.restore(path)
                _refuse_lost(store)
            if error.errno in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT):
                raise storage_error(error) from error
            if port.boottime() >= until:
                raise Uncertain(
                    f"{path}: {error.strerror}: it is unknown whether it was made: try again"
                ) from error
            port.sleep(0.05)
        finally:
            store.drop(draft)


def read_life(store: BoardFiles, ident: str, number: int) -> Life | None:
    """A life as `known/` records it; None without a valid entry.

    An empty entry means that a shell worker added the id.
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


def ended_life(store: BoardFiles, ident: str, number: int) -> int | None:
    """The highest fence of a life that was forgotten; None if it was not forgotten."""
    path = f"{GONE}/{names.escape(ident)}.{number}"
    try:
        fence = read_end(store, path)
    except FileNotFoundError:
        return None
    if fence is None:
        raise Exists(
            f"{path} does not hold a fence, so the id cannot be added again: "
            "run `dibs check --repair`, which writes it again"
        )
    return fence


def read_end(store: BoardFiles, path: str) -> int | None:
    """The fence that an entry in `gone/` holds; None if the entry is invalid."""
    try:
        data = store.port.read(path, 64)[0]
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error) from error
    text = data.decode("ascii", "replace").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,17}", text) else None


def latest_life(store: BoardFiles, ident: str) -> Life | None:
    """The latest life of an id, forgotten or not; None if dibs never added it."""
    number = 0
    eid = names.escape(ident)
    while any(store.there(f"{folder}/{eid}.{number + 1}") for folder in (KNOWN, GONE)):
        number += 1
    return read_life(store, ident, number)
