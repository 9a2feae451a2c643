"""A job queue and lock service in a plain directory.

A task is a file; claiming it is one atomic rename. A heartbeat keeps the claim; when heartbeats
stop, the lease expires and the task is requeued.

    board = dibs.open("tasks", create=True)
    board.add("task-7", b"what to do")
    claim = board.claim(owner="web-3")
    claim.beat()
    claim.done()
"""

import typing

if typing.TYPE_CHECKING:
    from dibs.board import Board, Log, Watch, open, watch
    from dibs.host import Host, this_host
    from dibs.keeping import KeptClaim
    from dibs.model.answers import Finding, LockStatus, Reaped, Resolved
    from dibs.model.capabilities import Capability
    from dibs.model.delta import Delta
    from dibs.model.entries import Entry
    from dibs.model.errors import (
        Asked,
        BadName,
        BadSettings,
        BoardMissing,
        Changed,
        DibsError,
        Exists,
        Held,
        Lost,
        NewerFormat,
        NoBoard,
        NotABoard,
        NotAllowed,
        NotDue,
        NotExact,
        NothingToClaim,
        NotInstalled,
        NotMounted,
        OlderFormat,
        Paused,
        ReadOnly,
        Refused,
        Stop,
        StorageError,
        Uncertain,
        Unclaimable,
        UnknownId,
    )
    from dibs.model.events import Cursor, Event
    from dibs.model.evidence import Evidence, Proof, Verdict
    from dibs.model.fitness import Ability
    from dibs.model.health import Health, Trouble
    from dibs.model.hints import Hints
    from dibs.model.holder import Holder
    from dibs.model.location import Location
    from dibs.model.outputs import KeptOutput, Output
    from dibs.model.pauses import Pause
    from dibs.model.process import Process
    from dibs.model.questions import Question
    from dibs.model.rates import Rates
    from dibs.model.records import Record
    from dibs.model.sample import Sample
    from dibs.model.settings import Settings
    from dibs.model.snapshot import Change, Snapshot
    from dibs.model.task import Stamp, Task
    from dibs.model.undoing import LastActs
    from dibs.model.waiters import Waiter
    from dibs.protocols import Claim, OutputKeeper, Presence, Retry
    from dibs.working import Working, WorkLoop

    __version__: str

__all__ = [
    "Ability",
    "Asked",
    "BadName",
    "BadSettings",
    "Board",
    "BoardMissing",
    "Capability",
    "Change",
    "Changed",
    "Claim",
    "Cursor",
    "Delta",
    "DibsError",
    "Entry",
    "Event",
    "Evidence",
    "Exists",
    "Finding",
    "Health",
    "Held",
    "Hints",
    "Holder",
    "Host",
    "KeptClaim",
    "KeptOutput",
    "LastActs",
    "Location",
    "LockStatus",
    "Log",
    "Lost",
    "NewerFormat",
    "NoBoard",
    "NotABoard",
    "NotAllowed",
    "NotDue",
    "NotExact",
    "NotInstalled",
    "NotMounted",
    "NothingToClaim",
    "OlderFormat",
    "Output",
    "OutputKeeper",
    "Pause",
    "Paused",
    "Presence",
    "Process",
    "Proof",
    "Question",
    "Rates",
    "ReadOnly",
    "Reaped",
    "Record",
    "Refused",
    "Resolved",
    "Retry",
    "Sample",
    "Settings",
    "Snapshot",
    "Stamp",
    "Stop",
    "StorageError",
    "Task",
    "Trouble",
    "Uncertain",
    "Unclaimable",
    "UnknownId",
    "Verdict",
    "Waiter",
    "Watch",
    "WorkLoop",
    "Working",
    "open",
    "this_host",
    "watch",
]

# Each name is imported on first use, so that a worker's verb does not import what a screen needs.
_ROOMS = {
    "board": (
        "Board",
        "Log",
        "Watch",
        "open",
        "watch",
    ),
    "host": (
        "Host",
        "this_host",
    ),
    "keeping": ("KeptClaim",),
    "model.answers": (
        "Finding",
        "Reaped",
        "Resolved",
        "LockStatus",
    ),
    "model.capabilities": ("Capability",),
    "model.delta": ("Delta",),
    "model.entries": ("Entry",),
    "model.errors": (
        "Asked",
        "BadName",
        "BadSettings",
        "BoardMissing",
        "Changed",
        "DibsError",
        "Exists",
        "Held",
        "Lost",
        "NewerFormat",
        "NoBoard",
        "NotABoard",
        "NotAllowed",
        "NotAllowed",
        "NotDue",
        "NotExact",
        "NotInstalled",
        "NotMounted",
        "NothingToClaim",
        "OlderFormat",
        "Paused",
        "ReadOnly",
        "Refused",
        "Stop",
        "StorageError",
        "Uncertain",
        "Unclaimable",
        "UnknownId",
    ),
    "model.events": (
        "Cursor",
        "Event",
    ),
    "model.evidence": (
        "Evidence",
        "Proof",
        "Verdict",
    ),
    "model.holder": ("Holder",),
    "model.fitness": ("Ability",),
    "model.health": (
        "Health",
        "Trouble",
    ),
    "model.hints": ("Hints",),
    "model.location": ("Location",),
    "model.outputs": (
        "KeptOutput",
        "Output",
    ),
    "model.pauses": ("Pause",),
    "model.process": ("Process",),
    "model.questions": ("Question",),
    "model.rates": ("Rates",),
    "model.records": ("Record",),
    "model.sample": ("Sample",),
    "model.settings": ("Settings",),
    "model.snapshot": (
        "Change",
        "Snapshot",
    ),
    "model.task": (
        "Stamp",
        "Task",
    ),
    "model.undoing": ("LastActs",),
    "model.waiters": ("Waiter",),
    "protocols": (
        "Claim",
        "OutputKeeper",
        "Presence",
        "Retry",
    ),
    "working": (
        "WorkLoop",
        "Working",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> typing.Any:
    if name == "__version__":
        return _version()
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'dibs' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"dibs.{_ROOM_OF[name]}"), name)
    return value


def _version() -> str:
    """The version of the installed distribution, read on first use."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("dibs")
    except PackageNotFoundError:
        found = "(not installed: this is a source tree)"
    globals()["__version__"] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
