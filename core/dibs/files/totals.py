"""Count all events since the log began, at the cost of what is new since the last count.

Old journals are removed, and a counter that went down would look like a restart. So the counts are
kept on the board, in one file with how far each journal was counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.files.journal_chain import MOST, PIECE, Chain, forwards
from dibs.files.journal_files import current
from dibs.files.journal_reader import move_on, times
from dibs.model.rates import TOTALS

if TYPE_CHECKING:
    from dibs.files.port import Port

FILE = ".dibs/totals"
_DRAFTS = ".dibs/new"
_BYTES = 1 << 20
_HIGHEST = 1 << 53
"""The highest count that every reader of JSON and Prometheus keeps exactly."""


class _Counted(NamedTuple):
    """What was counted, and how far in each file."""

    seen: dict[str, int]
    counts: Counter[str]


def totals(port: Port, files: Sequence[str]) -> dict[str, int]:
    """The number of events of each kind, in these journals and in those that were removed."""
    known = _load(port)
    before = known.seen.copy(), known.counts.copy()
    move_on(known.seen, files)
    for file in known.seen.keys() - set(files):
        del known.seen[file]
    for _, chain in groupby(files, current):
        _count(port, list(chain), known)
    if before != known:
        _save(port, known)
    return {name: known.counts[name] for name in dict.fromkeys(TOTALS.values())}


def _count(port: Port, files: list[str], known: _Counted) -> None:
    """Count what is new in the files of one boot and mount; nothing if they are being rotated."""
    chain, seen = Chain(port, files), dict[str, int]()
    counts: Counter[str] = Counter()
    for file in files:
        try:
            size = port.stat(file).size
        except OSError:
            continue
        start = known.seen.get(file, 0)
        start = max(start if start <= size else 0, size - MOST)  # else it was replaced
        seen[file] = start
        for reached, lines in forwards(port.read, file, start, PIECE):
            seen[file] = reached
            counts.update(TOTALS[verb] for _, verb in times(lines) if verb in TOTALS)
    if not chain.rotated():  # else a name may have got another file's content: count it next time
        known.seen.update(seen)
        known.counts.update(counts)


def _load(port: Port) -> _Counted:
    try:
        found: Any = json.loads(port.read(FILE, _BYTES)[0])
        seen, counts = _numbers(found["seen"]), _numbers(found["counts"], TOTALS.values())
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return _Counted({}, Counter())
    return _Counted(seen, Counter(counts))


def _numbers(found: Mapping[str, Any], allowed: Iterable[str] = ()) -> dict[str, int]:
    names = set(allowed)
    numbers = {n: v for n, v in found.items() if not names or n in names}
    if not all(type(value) is int and 0 <= value < _HIGHEST for value in numbers.values()):
        raise ValueError("not a count")
    return numbers


def _save(port: Port, known: _Counted) -> None:
    """Keep the counts; a reader that may not write counts from the last kept ones next time."""
    draft = f"{_DRAFTS}/{port.nonce()}"
    data = json.dumps({"seen": known.seen, "counts": known.counts}).encode("ascii")
    with suppress(OSError):
        port.create(draft, data)
        try:
            port.rename(draft, FILE)
        except OSError:
            port.unlink(draft)
