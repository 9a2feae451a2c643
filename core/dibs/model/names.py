"""The name grammar: reading exact names into tasks, and writing them.

A name is read as a `Task` or not at all. A name that cannot be read is a stranger: strangers are
counted and left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import repeat

from dibs.model.errors import BadName, NotExact, short
from dibs.model.lazy import lazy_pattern
from dibs.model.task import (
    _DEFAULT,
    ASKED,
    AVAILABLE,
    CLAIMED,
    DEFAULT_PRIORITY,
    DONE,
    FAILED,
    FREE,
    HELD,
    LATER,
    TAKER,
    Stamp,
    Task,
)

FREE_FOLDER = ".dibs/free"
PAUSED = ".paused"
"""A folder beside the tasks that exists only while it holds a pause."""

ID_BYTES = 120
OWNER_CHARS = 256
METADATA_CHARS = 1024

_ASKED = r"(?:q([1-9][0-9]{0,17})(?:r([1-9][0-9]{0,8}))?)?"
_STAMP = rf"f(0|[1-9][0-9]{{0,17}})(?:a([1-9][0-9]{{0,8}}))?(?:p([0-46-9]))?{_ASKED}"
_NOT_BEFORE = r"(?:n([1-9][0-9]{0,10}))?"
_CLAIM = r"[A-Za-z0-9_-]{1,40}-[0-9A-F]{10}"
_match_live = re.compile(
    rf"([A-Za-z0-9_=-]+)(?:\.{_STAMP}{_NOT_BEFORE})?(?:\.({_CLAIM}))?"
    r"\.(available|claimed|free|held|later|asked)"
).fullmatch
BULK_CHARS = 32
_match_bulk = re.compile(rf"[A-Za-z0-9_-]{{1,{BULK_CHARS}}}").fullmatch
match_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://").match
"""Matches the beginning of a URL."""
_match_safe = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_never_claimed = lazy_pattern(rf"(?<![^\0])(([A-Za-z0-9_-]{{1,{ID_BYTES}}})\.available)(?![^\0])")
_ended = lazy_pattern(rf"([A-Za-z0-9_=-]+)\.{_STAMP}\.({_CLAIM})")
_ended_simply = lazy_pattern(rf"[A-Za-z0-9_-]{{1,{ID_BYTES}}}\.f[1-9][0-9]{{0,17}}\.{_CLAIM}")
_free = lazy_pattern(
    rf"{re.escape(FREE_FOLDER)}/[0-9a-f]{{3}}/([A-Za-z0-9_=-]+)\.f(0|[1-9][0-9]{{0,17}})"
)
_stamp = lazy_pattern(_STAMP + _NOT_BEFORE)
_stem = lazy_pattern(rf"(.+)\.{_STAMP}", re.DOTALL)
_nonce = lazy_pattern(r"[0-9A-F]{10}")
_state_word = lazy_pattern(r"available|claimed|free|held|lock|claimed-by-.*", re.DOTALL)
_escaped = re.compile(r"=(..?)?")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


_SHELL_STATES = (AVAILABLE, CLAIMED, FREE)
"""The state words that need no stamp."""
_HELD_STATES = (CLAIMED, HELD, ASKED)
"""The state words of a name with a claim."""
FENCE_MAX, ATTEMPTS_MAX, NOT_BEFORE_MAX = 10**18 - 1, 10**9 - 1, 10**11 - 1


def read_stamp(text: str) -> Stamp | None:
    """The counters of a stamp; None if it is not the canonical spelling."""
    m = _stamp().fullmatch(text)
    return Stamp(*_counters(*m.groups())) if m else None


def _counters(
    fence: str | None,
    attempts: str | None,
    priority: str | None,
    question: str | None,
    answer: str | None,
    not_before: str | None = None,
) -> tuple[int, int, int, int, int, int]:
    """The numbers of a stamp from the texts in a name; None for one that is left out."""
    return (
        int(fence or 0),
        int(attempts or 0),
        int(priority or DEFAULT_PRIORITY),
        int(question or 0),
        int(answer or 0),
        int(not_before or 0),
    )


def spell_stamp(stamp: Stamp) -> str:
    """The stamp of a name with a claim, which includes `f0`."""
    fence, attempts, priority, question, answer, not_before = stamp
    text = f"f{fence}"
    if attempts:
        text += f"a{attempts}"
    if priority != DEFAULT_PRIORITY:
        text += f"p{priority}"
    if question:
        text += f"q{question}r{answer}" if answer else f"q{question}"
    if not_before:
        text += f"n{not_before}"
    return text


def _bare(stamp: Stamp) -> str:
    """The stamp of a name without a claim, with its dot; empty for the default counters."""
    return "" if stamp == _DEFAULT else f".{spell_stamp(stamp)}"


_make = tuple.__new__


def read(name: str) -> Task | None:
    """The task of a name in the board's directory; None for a stranger."""
    m = _match_live(name)
    if m is None:
        return _read_shell_name(name)
    eid, fence, attempts, priority, question, answer, not_before, claim, word = m.groups()
    if fence is claim and word in _SHELL_STATES and len(eid) <= ID_BYTES and "=" not in eid:
        # most of a long board
        return _make(Task, (name, eid, word, 0, 0, DEFAULT_PRIORITY, "", 0, 0, 0))
    if claim is not None:
        fits = fence is not None and not_before is None and word in _HELD_STATES
    elif not_before is not None:
        fits = word == LATER
    else:
        fits = word in _SHELL_STATES and (
            fence != "0" or not (attempts is priority is question is None)
        )
    if not fits:
        return _read_shell_name(name)
    ident = eid if "=" not in eid else unescape(eid)
    if ident is None or len(eid) > ID_BYTES:
        return _read_shell_name(name)
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
            int(question) if question is not None else 0,
            int(answer) if answer is not None else 0,
            int(not_before) if not_before is not None else 0,
        ),
    )


def read_never_claimed(names: Iterable[str]) -> list[Task]:
    """The tasks among many names that were never claimed, found all at once.

    They are most of a long board, and `read` takes several times as long for each.
    """
    found = _never_claimed().findall("\0".join(names))
    if not found:
        return []
    names, ids = zip(*found, strict=True)
    same = map(repeat, (AVAILABLE, 0, 0, DEFAULT_PRIORITY, "", 0, 0, 0))
    return list(map(_make, repeat(Task), zip(names, ids, *same, strict=False)))


def live(listed: Iterable[str]) -> list[Task]:
    """The claimed tasks and held locks of a listing of the board."""
    # Most names of a long board are those of available tasks; skipping them first saves time.
    others = [name for name in listed if not name.endswith(".available")]
    found = map(read, [n for n in others if ".claimed" in n or n.endswith(".held")])
    return [task for task in found if task is not None]


def read_ended(folder: str, name: str) -> Task | None:
    """The task of a name in `done/` or `failed/`; None for a stranger."""
    m = _ended().fullmatch(name)
    if m is None:
        return None
    eid, *stamp, claim = m.groups()
    ident = eid if "=" not in eid else unescape(eid)
    if ident is None or len(eid) > ID_BYTES:
        return None
    fence, attempts, priority, question, answer, not_before = _counters(*stamp)
    return _make(
        Task,
        (
            *(f"{folder}/{name}", ident, folder, fence, attempts, priority, claim),
            *(question, answer, not_before),
        ),
    )


def read_free(path: str) -> Task | None:
    """The free lock of a path; None for a stranger, or if the lock belongs in another folder."""
    m = _free().fullmatch(path)
    ident = unescape(m[1]) if m and len(m[1]) <= ID_BYTES else None
    if m is None or ident is None or not path.startswith(_free_folder(m[1])):
        return None
    return _make(Task, (path, ident, FREE, int(m[2]), 0, DEFAULT_PRIORITY, "", 0, 0, 0))


def right_free(path: str) -> str | None:
    """The path at which the free lock of a path belongs; None for a stranger."""
    m = _free().fullmatch(path)
    if m is None or len(m[1]) > ID_BYTES or unescape(m[1]) is None:
        return None
    return f"{_free_folder(m[1])}/{path.rpartition('/')[2]}"


def count_ended(folder: str, names: Iterable[str]) -> int:
    """Count the tasks among the names in `done/` or `failed/`, without reading each."""
    simply = _ended_simply().fullmatch
    return sum(bool(simply(name)) or read_ended(folder, name) is not None for name in names)


def _read_shell_name(name: str) -> Task | None:
    """The task of a name that only a shell writes: a dotted id, or a claim with its owner."""
    if "/" in name or "\0" in name:
        return None
    parts = name.split(".")
    words = [n for n, part in enumerate(parts) if _state_word().fullmatch(part)]
    if not words or words[0] == 0 or name[0] == ".":
        return None
    at = words[0]
    word, stem = parts[at], ".".join(parts[:at])
    if word.startswith("claimed-by-"):  # an owner follows, often a host name with dots
        if any(n == len(parts) - 1 or parts[n].startswith("claimed-by-") for n in words[1:]):
            return None
        if len(word) + sum(map(len, parts[at + 1 :])) == len("claimed-by-"):
            return None
        word = CLAIMED
    elif at != len(parts) - 1 or word not in (AVAILABLE, CLAIMED):
        return None
    eid, stamp = stem, _DEFAULT
    m = _stem().fullmatch(stem)
    if m is not None and unescape(m[1]) is not None:
        found = Stamp(*_counters(*m.groups()[1:]))
        if found != _DEFAULT:
            eid, stamp = m[1], found
    ident = unescape(eid)
    if ident is None:
        ident = stem
    try:
        escape(ident)
    except BadName:
        return None
    return Task(name, ident, word, *stamp[:3], "", *stamp[3:])


def read_doubtful(name: str) -> Task | None:
    """The shell claim that a stranger may be; None if the name is readable or cannot be a claim.

    An owner that ends in a state word is ambiguous: `x.claimed-by-web.lock` is a claim of `x` by
    the host `web.lock`, or a lock that was left behind. A person has to decide.
    """
    stem, _, owner = name.partition(".claimed-by-")
    if not owner or "/" in name or "\0" in name or read(name) is not None:
        return None
    task = read(f"{stem}.{AVAILABLE}")
    return task and task._replace(name=name, state=CLAIMED)


def read_any(name: str) -> Task | None:
    """The task of a name relative to the board, in any folder; None for a stranger."""
    folder, slash, rest = name.partition("/")
    if not slash:
        return read(name)
    return read_ended(folder, rest) if folder in (DONE, FAILED) else read_free(name)


def escape(ident: str) -> str:
    """The spelling of an id in a name; no dot is left in it, because dots separate fields."""
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
            raise BadName(
                f"the id {short(ident)} contains an unpaired surrogate: type it again"
            ) from None
        if raw.decode("utf-8", "surrogateescape") != ident:
            raise BadName(f"the id {short(ident)} has a character in separate bytes: type it again")
        eid = "".join(chr(b) if b in _SAFE else f"={b:02X}" for b in raw)
    if not eid:
        raise BadName(f"the id is empty: give one of 1 to {ID_BYTES} bytes")
    if len(eid) > ID_BYTES:
        raise BadName(
            f"an id must have 1 to {ID_BYTES} bytes after escaping, {ident[:40]!r} has {len(eid)}: "
            "use a shorter one"
        )
    return eid


def unescape(eid: str) -> str | None:
    """The id of a spelling; None if it is not the canonical spelling."""
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
    """An owner's spelling in a name; the record has the full text."""
    return _folded(check_words("an owner", owner))


@lru_cache(64)  # a worker makes all its claims under one owner
def _folded(owner: str) -> str:
    if not owner or len(owner) > OWNER_CHARS or not owner.isprintable():
        raise BadName(
            f"an owner must have 1 to {OWNER_CHARS} printable characters, got {owner[:40]!r}"
        )
    folded = (owner if _match_safe(owner) else re.sub(r"[^A-Za-z0-9_-]", "-", owner))[:40]
    return f"{folded}_" if folded == TAKER else folded


def check_nonce(nonce: str) -> str:
    """The end of a claim's name, if it is valid; else `BadName`."""
    if not isinstance(nonce, str) or _nonce().fullmatch(nonce) is None:
        raise BadName(f"a nonce must be ten digits or letters A to F, got {short(nonce)}")
    return nonce


def check_metadata(metadata: str) -> str:
    """The metadata, if it fits a record; else `BadName`."""
    check_words("metadata", metadata)
    if len(metadata) > METADATA_CHARS:
        raise BadName(
            f"metadata must have at most {METADATA_CHARS} characters, got {len(metadata)}: "
            "put the long text in a file and the file's path here"
        )
    return metadata


def check_text(what: str, text: str) -> str:
    """The text, if it is a string; else `BadName`, before an act begins and not within it."""
    if not isinstance(text, str):
        raise BadName(f"{what} must be text, got {_kind(text)}")
    return text


def check_bulk(bulk: str) -> str:
    """The identity of a bulk act, if it is valid or empty; else `BadName`."""
    if bulk and _match_bulk(check_text("the identity of a bulk act", bulk)) is None:
        raise BadName(
            f"the identity of a bulk act must be 1 to {BULK_CHARS} of A-Z a-z 0-9 _ -, got "
            f"{short(bulk)}"
        )
    return bulk


def check_task(task: Task) -> Task:
    """The task, if it is one; else `BadName`."""
    if not isinstance(task, Task):
        raise BadName(f"a task must be one Task, as `board.find(ID)[0]`, got {_kind(task)}")
    return task


def check_tasks(tasks: Iterable[Task]) -> list[Task]:
    """These tasks, if that is what they are; else `BadName`."""
    if isinstance(tasks, (str, bytes, Task)) or not isinstance(tasks, Iterable):
        raise BadName(
            f"several tasks must be a list of Task, as `board.find(ID)`, got {_kind(tasks)}"
        )
    return [check_task(task) for task in tasks]


def check_words(what: str, text: str) -> str:
    """The same for a text that people read; it must be valid UTF-8 as well."""
    if not isinstance(text, str):
        return check_text(what, text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadName(f"{what} must be valid UTF-8, got {short(text)}") from None
    return text


def _kind(value: object) -> str:
    """A value and its type, for an error."""
    return f"{type(value).__name__}: {short(value)}"


def check_priority(priority: int) -> int:
    """The priority, if it is valid; else `BadName`."""
    if type(priority) is not int or not 0 <= priority <= 9:
        raise BadName(f"priority must be 0 to 9 (9 is first), got {short(priority)}")
    return priority


def unclaimed_name(ident: str, stamp: Stamp, word: str = AVAILABLE) -> str:
    """The name of a task that no one holds or, with `FREE`, of a free lock.

    A task whose stamp says when it starts is `later`; any other is available.
    """
    if word == FREE:
        eid = escape(ident)
        return f"{_free_folder(eid)}/{eid}.f{stamp.fence}"
    return f"{escape(ident)}{_bare(stamp)}.{LATER if stamp.not_before else word}"


def free_folder(ident: str) -> str:
    """The folder of a lock while it is free: one of 4,096, so that each listing stays short."""
    return _free_folder(escape(ident))


def _free_folder(eid: str) -> str:
    if "=1F" in eid:  # a slot is in the folder of its lock
        from dibs.model.slots import ESCAPED, split

        eid = split(eid, ESCAPED)[0]
    return f"{FREE_FOLDER}/{_crc32()(eid.encode()) & 0xFFF:03x}"


@cache
def _crc32() -> Callable[[bytes], int]:
    from zlib import crc32  # imported for locks only

    return crc32


def claimed(task: Task, fence: int, claim: str) -> Task:
    """The task or lock after it was claimed with that fence."""
    _, ident, word, _, attempts, priority, _, question, answer, _ = task
    word = HELD if word in (FREE, HELD) else CLAIMED
    stamp = _make(Stamp, (fence, attempts, priority, question, answer, 0))
    stem = claim_stem(ident, stamp, claim)
    return _make(
        Task,
        (f"{stem}.{word}", ident, word, fence, attempts, priority, claim, question, answer, 0),
    )


def claim_stem(ident: str, stamp: Stamp, claim: str) -> str:
    """The name of a claim without a state word, as its record and its ended file have it.

    The time before which the task could not start ends with the claim.
    """
    if stamp.not_before:
        stamp = stamp._replace(not_before=0)
    return f"{escape(ident)}.{spell_stamp(stamp)}.{claim}"


def spellings(ident: str) -> tuple[str, ...]:
    """The possible beginnings of an id's names: escaped, or as a shell writes it."""
    eid = escape(ident)
    if eid == ident or "/" in ident or "\0" in ident:
        return (f"{eid}.",)
    return (f"{eid}.", f"{ident}.")


def exact(text: str) -> tuple[str, ...]:
    """The names that a printed claim can have on the board, best first; `NotExact` for an id."""
    if read_any(check_text("a name", text)) is not None:
        return (text,)
    if _ended().fullmatch(text):
        return (
            *(f"{text}.{CLAIMED}", f"{text}.{HELD}", f"{FAILED}/{text}", f"{DONE}/{text}"),
            f"{text}.{ASKED}",
        )
    raise NotExact(f"{short(text)} is not the exact name of a claim: `dibs show ID` prints it")


def read_printed(text: str) -> Task | None:
    """The task or claim whose exact name a verb printed; None for an id."""
    try:
        return read_any(exact(text)[0])
    except NotExact:
        return None


def is_exact(name: str) -> bool:
    """Whether a text has the form of an exact name."""
    claim, slash, _ = name.rpartition("/")
    try:
        exact(claim if slash and claim not in ("done", "failed") else name)
    except NotExact:
        return False
    return True


def is_pause_path(*texts: str) -> bool:
    """Whether one of these is the name of a pause as the log has it."""
    return any(text.startswith(f"{PAUSED}/") for text in texts)


def lines_of(text: str) -> list[str]:
    """The lines of a list without repeats and blanks around them; notes are left out.

    A note begins with `#`. An id that begins with it has to be given as an argument.
    """
    lines = dict.fromkeys(line.strip(" \t\r") for line in text.removeprefix("\ufeff").split("\n"))
    return [line for line in lines if line and not line.startswith("#")]
