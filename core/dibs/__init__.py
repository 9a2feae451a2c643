"""One current owner for every task in a shared directory.

A task is a file; its name says whose it is; every change of ownership is one rename of the exact
name that was seen.

    board = dibs.open("tasks", create=True)
    board.add("task-7", b"what to do")
    claim = board.claim(owner="web-3")
    claim.beat()
    claim.done()
"""

import typing

if typing.TYPE_CHECKING:
    from dibs.board import Board, open
    from dibs.claims import Claim
    from dibs.clock import Sample
    from dibs.entries import Entry
    from dibs.errors import (
        BadName,
        BoardMissing,
        Changed,
        DibsError,
        Exists,
        Held,
        Lost,
        NotABoard,
        NotExact,
        ReadOnly,
        Refused,
        Stop,
        StorageError,
        Uncertain,
        Unclaimable,
        UnknownId,
    )
    from dibs.evidence import Evidence, Proof, Verdict
    from dibs.facts import Facts
    from dibs.findings import Finding
    from dibs.host import Host, Process, this_host
    from dibs.janitor import Reaped
    from dibs.journal import Event, Journal
    from dibs.lists import Resolved
    from dibs.locks import Status
    from dibs.names import Stamp, Task
    from dibs.rates import Rates
    from dibs.records import Record
    from dibs.settings import Settings
    from dibs.undoing import LastActs
    from dibs.view import Change, Snapshot, View

__all__ = [
    "BadName",
    "Board",
    "BoardMissing",
    "Change",
    "Changed",
    "Claim",
    "DibsError",
    "Entry",
    "Event",
    "Evidence",
    "Exists",
    "Facts",
    "Finding",
    "Held",
    "Host",
    "Journal",
    "LastActs",
    "Lost",
    "NotABoard",
    "NotExact",
    "Process",
    "Proof",
    "Rates",
    "ReadOnly",
    "Reaped",
    "Record",
    "Refused",
    "Resolved",
    "Sample",
    "Settings",
    "Snapshot",
    "Stamp",
    "Status",
    "Stop",
    "StorageError",
    "Task",
    "Uncertain",
    "Unclaimable",
    "UnknownId",
    "Verdict",
    "View",
    "open",
    "this_host",
]

# A worker's verb must not pay for what only a screen needs, so each name is fetched when used.
_ROOMS = {
    "board": (
        "Board",
        "open",
    ),
    "findings": ("Finding",),
    "claims": ("Claim",),
    "clock": ("Sample",),
    "entries": ("Entry",),
    "errors": (
        "BadName",
        "BoardMissing",
        "Changed",
        "DibsError",
        "Exists",
        "Held",
        "Lost",
        "NotABoard",
        "NotExact",
        "ReadOnly",
        "Refused",
        "Stop",
        "StorageError",
        "Unclaimable",
        "Unclaimable",
        "Uncertain",
        "UnknownId",
    ),
    "evidence": (
        "Evidence",
        "Proof",
        "Verdict",
    ),
    "facts": ("Facts",),
    "host": (
        "Host",
        "Process",
        "this_host",
    ),
    "janitor": ("Reaped",),
    "journal": (
        "Event",
        "Journal",
    ),
    "lists": ("Resolved",),
    "locks": ("Status",),
    "names": (
        "Stamp",
        "Task",
    ),
    "rates": ("Rates",),
    "records": ("Record",),
    "settings": ("Settings",),
    "undoing": ("LastActs",),
    "view": (
        "Change",
        "Snapshot",
        "View",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> typing.Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'dibs' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"dibs.{_ROOM_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
