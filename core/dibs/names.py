"""The name grammar: what a file's name says of its task, and how each name is spelled.

Everything here is pure. A name is read into a `Task` or into nothing; what cannot be read is
a stranger, which is counted and left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import repeat
from typing import NamedTuple

from dibs.errors import BadName, NotExact, short

AVAILABLE, CLAIMED, FREE, HELD, DONE, FAILED = (
    "available",
    "claimed",
    "free",
    "held",
    "done",
    "failed",
)
FREE_FOLDER = ".dibs/free"
TAKER = "dibs"
"""The reserved owner of a plain claim that is being handed back."""

ID_BYTES = 120
OWNER_CHARS = 256
METADATA_CHARS = 1024
DEFAULT_PRIORITY = 5

_STAMP = r"f(0|[1-9][0-9]{0,17})(?:a([1-9][0-9]{0,8}))?(?:p([0-46-9]))?"
_CLAIM = r"[A-Za-z0-9_-]{1,40}-[0-9A-F]{10}"
_match_live = re.compile(
    rf"([A-Za-z0-9_=-]+)(?:\.{_STAMP})?(?:\.({_CLAIM}))?\.(available|claimed|free|held)"
).fullmatch
_find_plainest = re.compile(
    rf"(?<![^\0])(([A-Za-z0-9_-]{{1,{ID_BYTES}}})\.available)(?![^\0])"
).findall
_match_ended = re.compile(rf"([A-Za-z0-9_=-]+)\.{_STAMP}\.({_CLAIM})").fullmatch
_match_free = re.compile(
    rf"{re.escape(FREE_FOLDER)}/[0-9a-f]{{3}}/([A-Za-z0-9_=-]+)\.f(0|[1-9][0-9]{{0,17}})"
).fullmatch
_match_ended_simply = re.compile(
    rf"[A-Za-z0-9_-]{{1,{ID_BYTES}}}\.f[1-9][0-9]{{0,17}}\.{_CLAIM}"
).fullmatch
_match_stamp = re.compile(_STAMP).fullmatch
_match_stem = re.compile(rf"(.+)\.{_STAMP}", re.DOTALL).fullmatch
_match_safe = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_match_state_word = re.compile(
    r"available|claimed|free|held|lock|claimed-by-.*", re.DOTALL
).fullmatch
_escaped = re.compile(r"=(..?)?")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


FENCE_MAX, ATTEMPTS_MAX = 10**18 - 1, 10**9 - 1


class Stamp(NamedTuple):
    """The counters that a name carries: they decide fences, attempts and order."""

    fence: int = 0
    attempts: int = 0
    priority: int = DEFAULT_PRIORITY

    def full(self) -> str:
        """The spelling that stands beside a claim; `f0` is written there."""
        text = f"f{self.fence}"
        if self.attempts:
            text += f"a{self.attempts}"
        if self.priority != DEFAULT_PRIORITY:
            text += f"p{self.priority}"
        return text

    def bare(self) -> str:
        """The spelling in a name without a claim, with its dot; nothing for the default."""
        return "" if self == _DEFAULT else f".{self.full()}"


_DEFAULT = Stamp()


def read_stamp(text: str) -> Stamp | None:
    """The counters in a full spelling; None where it is not the canonical one."""
    m = _match_stamp(text)
    return Stamp(int(m[1]), int(m[2] or 0), int(m[3] or DEFAULT_PRIORITY)) if m else None


class Task(NamedTuple):
    """One task or lock as its name tells it; nothing here needs more than the listing."""

    name: str
    """The exact name on the board: opaque to callers, and what every act must give."""
    id: str
    state: str
    fence: int
    attempts: int
    priority: int
    claim: str
    """`<owner>-<nonce>`; empty for what nobody holds and for a plain-shell claim."""

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.fence, self.attempts, self.priority)

    @property
    def kind(self) -> str:
        return "lock" if self.state in (FREE, HELD) else "task"

    @property
    def live(self) -> bool:
        """Somebody holds it."""
        return self.state in (CLAIMED, HELD)

    @property
    def hardened(self) -> bool:
        """Only dibs makes such a name: it has a claim or counters."""
        return bool(self.claim) or self.stamp != _DEFAULT

    @property
    def plain(self) -> bool:
        """A claim made with nothing but `mv`; its name holds no nonce."""
        return self.state == CLAIMED and not self.claim

    @property
    def take(self) -> bool:
        """A plain claim on its way back to its queue."""
        return self.state == CLAIMED and self.claim[:-11] == TAKER

    @property
    def owner(self) -> str:
        """The owner as far as the name tells it."""
        if self.claim:
            return self.claim[:-11]
        return self.name.partition(".claimed-by-")[2] if self.plain else ""

    @property
    def stem(self) -> str:
        """The name without folder and state word: how a claim is printed."""
        if "/" in self.name:
            return self.name.rpartition("/")[2]
        if self.plain:
            return self.name.partition(".claimed-by-")[0].removesuffix(".claimed")
        return self.name.rpartition(".")[0]


_make = tuple.__new__


def read(name: str) -> Task | None:
    """The task that a name in the board's directory stands for, or None for a stranger."""
    m = _match_live(name)
    if m is None:
        return _read_plain(name)
    eid, fence, attempts, priority, claim, word = m.groups()
    if fence is claim and word != HELD and len(eid) <= ID_BYTES and "=" not in eid:
        return _make(Task, (name, eid, word, 0, 0, DEFAULT_PRIORITY, ""))  # most of a long board
    if claim is None:
        fits = word != HELD and (fence != "0" or attempts is not None or priority is not None)
    else:
        fits = fence is not None and word in (CLAIMED, HELD)
    if not fits:
        return _read_plain(name)
    ident = eid if "=" not in eid else _unescape(eid)
    if ident is None or len(eid) > ID_BYTES:
        return _read_plain(name)
    return _make(
        Task,
        (
            name,
            ident,
            word,
            int(fence) if fence is not None else 0,
            int(attempts) if attempts is not None else 0,
            int(priority) if priority is not None else DEFAULT_PRIORITY,
            claim or "",
        ),
    )


def read_plainest(names: Iterable[str]) -> list[Task]:
    """The tasks among many names that nobody ever claimed, found all at once.

    They are most of a long board, and `read` takes several times as long for each of them.
    """
    found = _find_plainest("\0".join(names))
    if not found:
        return []
    whole, ids = zip(*found, strict=True)
    same = map(repeat, (AVAILABLE, 0, 0, DEFAULT_PRIORITY, ""))
    return list(map(_make, repeat(Task), zip(whole, ids, *same, strict=False)))


def read_ended(folder: str, name: str) -> Task | None:
    """The task that a name in `done/` or `failed/` stands for."""
    m = _match_ended(name)
    if m is None:
        return None
    eid, fence, attempts, priority, claim = m.groups()
    ident = eid if "=" not in eid else _unescape(eid)
    if ident is None or len(eid) > ID_BYTES:
        return None
    return Task(
        f"{folder}/{name}",
        ident,
        folder,
        int(fence),
        int(attempts or 0),
        int(priority or DEFAULT_PRIORITY),
        claim,
    )


def read_free(path: str) -> Task | None:
    """The free lock that a path stands for; one in the folder of another lock is a stranger."""
    m = _match_free(path)
    ident = _unescape(m[1]) if m and len(m[1]) <= ID_BYTES else None
    if m is None or ident is None or not path.startswith(_free_folder(m[1])):
        return None
    return _make(Task, (path, ident, FREE, int(m[2]), 0, DEFAULT_PRIORITY, ""))


def count_ended(folder: str, names: Iterable[str]) -> int:
    """How many names in `done/` or `failed/` are tasks'; no task is made of them."""
    return sum(
        bool(_match_ended_simply(name)) or read_ended(folder, name) is not None for name in names
    )


def _read_plain(name: str) -> Task | None:
    """A name that only a shell would write: a dotted id, or a claim that names its owner."""
    if "/" in name or "\0" in name:
        return None
    parts = name.split(".")
    words = [n for n, part in enumerate(parts) if _match_state_word(part)]
    if not words or words[0] == 0 or name[0] == ".":
        return None
    at = words[0]
    word, stem = parts[at], ".".join(parts[:at])
    if word.startswith("claimed-by-"):  # what follows is an owner: often a host's name, with dots
        if any(n == len(parts) - 1 or parts[n].startswith("claimed-by-") for n in words[1:]):
            return None
        if len(word) + sum(map(len, parts[at + 1 :])) == len("claimed-by-"):
            return None
        word = CLAIMED
    elif at != len(parts) - 1 or word not in (AVAILABLE, CLAIMED):
        return None
    eid, stamp = stem, _DEFAULT
    m = _match_stem(stem)
    if m is not None and _unescape(m[1]) is not None:
        found = Stamp(int(m[2]), int(m[3] or 0), int(m[4] or DEFAULT_PRIORITY))
        if found != _DEFAULT:
            eid, stamp = m[1], found
    ident = _unescape(eid)
    if ident is None:
        ident = stem
    try:
        escape(ident)
    except BadName:
        return None
    return Task(name, ident, word, *stamp, "")


def read_doubtful(name: str) -> Task | None:
    """The shell claim that a stranger may be; None where the name is read, or could be no claim.

    An owner that ends in a state word could be the end of another name: `x.claimed-by-web.lock` is
    a claim of `x` by the host `web.lock`, or a lock that was left behind. Only a person can tell.
    """
    stem, _, owner = name.partition(".claimed-by-")
    if not owner or "/" in name or "\0" in name or read(name) is not None:
        return None
    task = read(f"{stem}.{AVAILABLE}")
    return task and task._replace(name=name, state=CLAIMED)


def read_any(name: str) -> Task | None:
    """The task that a board-relative name stands for, in whichever folder."""
    folder, slash, rest = name.partition("/")
    if not slash:
        return read(name)
    return read_ended(folder, rest) if folder in (DONE, FAILED) else read_free(name)


def escape(ident: str) -> str:
    """The spelling of an id inside a hardened name: dots only ever separate fields."""
    try:
        safe = _match_safe(ident)
    except TypeError:
        raise BadName(f"an id must be text, got {_kind(ident)}") from None
    if safe:
        eid = ident
    else:
        try:
            raw = ident.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise BadName(f"the id {short(ident)} holds half a character; write it anew") from None
        if raw.decode("utf-8", "surrogateescape") != ident:
            raise BadName(f"the id {short(ident)} spells a character as bytes; write it anew")
        eid = "".join(chr(b) if b in _SAFE else f"={b:02X}" for b in raw)
    if not 1 <= len(eid) <= ID_BYTES:
        raise BadName(
            f"an id must have 1 to {ID_BYTES} bytes once escaped; this one has {len(eid)}: "
            f"{ident[:40]!a}"
        )
    return eid


def _unescape(eid: str) -> str | None:
    """The id that a spelling stands for; None where it is not the one canonical spelling."""
    if _match_safe(eid):
        return eid
    raw = bytearray()
    at = 0
    for m in _escaped.finditer(eid):
        code = m[1] or ""
        if len(code) != 2 or not set(code) <= set("0123456789ABCDEF") or int(code, 16) in _SAFE:
            return None
        between = eid[at : m.start()]
        if between and not _match_safe(between):
            return None
        raw += between.encode()
        raw.append(int(code, 16))
        at = m.end()
    rest = eid[at:]
    if not at or (rest and not _match_safe(rest)):
        return None
    return (raw + rest.encode()).decode("utf-8", "surrogateescape")


def fold_owner(owner: str) -> str:
    """An owner's spelling inside a name; the full text stands in the record."""
    check_text("an owner", owner)
    try:
        owner.encode()
    except UnicodeEncodeError:
        raise BadName(f"the owner {short(owner)} holds half a character; write it anew") from None
    if not owner or len(owner) > OWNER_CHARS or not owner.isprintable():
        raise BadName(f"an owner must have 1 to {OWNER_CHARS} printable characters: {owner[:40]!a}")
    folded = re.sub(r"[^A-Za-z0-9_-]", "-", owner)[:40]
    return f"{folded}_" if folded == TAKER else folded


def check_metadata(metadata: str) -> str:
    """The metadata itself, once it is known to fit a record."""
    check_text("metadata", metadata)
    try:
        metadata.encode()
    except UnicodeEncodeError:
        raise BadName("the metadata holds half a character; write it anew") from None
    if len(metadata) > METADATA_CHARS:
        raise BadName(
            f"metadata may have {METADATA_CHARS} characters, this has {len(metadata)}: "
            "put the long part in a file and its address here"
        )
    return metadata


def check_text(what: str, text: str) -> str:
    """The text itself, once it is known to be one: an act that was begun is not to fail of it."""
    if not isinstance(text, str):
        raise BadName(f"{what} must be text, got {_kind(text)}")
    return text


def _kind(value: object) -> str:
    """What was given instead, in few words."""
    return f"{type(value).__name__}: {short(value)}"


def check_priority(priority: int) -> int:
    """The priority itself, once it is known to be one."""
    if type(priority) is not int or not 0 <= priority <= 9:
        raise BadName(f"a priority is a whole number, 0 to 9, 9 first; not {short(priority)}")
    return priority


def waiting_name(ident: str, stamp: Stamp, word: str = AVAILABLE) -> str:
    """The name of something that nobody holds; of a free lock, which has no place in a queue."""
    if word == FREE:
        eid = escape(ident)
        return f"{_free_folder(eid)}/{eid}.f{stamp.fence}"
    return f"{escape(ident)}{stamp.bare()}.{word}"


def free_folder(ident: str) -> str:
    """Where a lock lies while nobody holds it: one of 4,096 folders, so that each stays short."""
    return _free_folder(escape(ident))


def _free_folder(eid: str) -> str:
    return f"{FREE_FOLDER}/{_crc32()(eid.encode()) & 0xFFF:03x}"


@cache
def _crc32() -> Callable[[bytes], int]:
    from zlib import crc32  # only locks pay for it

    return crc32


def claim_stem(ident: str, stamp: Stamp, claim: str) -> str:
    """The name of one claim: its record's, its ended file's, and, with a word, its live one's."""
    return f"{escape(ident)}.{stamp.full()}.{claim}"


def spellings(ident: str) -> tuple[str, ...]:
    """What the names of an id can begin with: its escaped form, or its text as a shell wrote it."""
    eid = escape(ident)
    if eid == ident or "/" in ident or "\0" in ident:
        return (f"{eid}.",)
    return (f"{eid}.", f"{ident}.")


def exact(text: str) -> tuple[str, ...]:
    """The names on the board that a printed claim can mean, best first; a bare id is refused."""
    if read_any(check_text("a name", text)) is not None:
        return (text,)
    if _match_ended(text):
        return (f"{text}.{CLAIMED}", f"{text}.{HELD}", f"{FAILED}/{text}", f"{DONE}/{text}")
    raise NotExact(f"{short(text)} is not the exact name of a claim: `dibs show` prints it")
