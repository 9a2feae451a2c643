"""Pauses: what a worker may still get, who ends which pause, and what an NFS client has cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dibs.files import locks
from dibs.files.port import Stat
from dibs.model.errors import Paused
from dibs.model.names import PAUSED
from dibs.model.pauses import Pause, encode_pause

from .actors import SimPort
from .desk import SETTINGS, Desk, Options, board, claimed
from .invariants import JANITOR, OPERATOR
from .scenario import Call, Faults
from .scene import Part, scene
from .scenes_claims import MINE, REAPER, held, holder, one
from .scenes_locks import acquires
from .simdisk import SimWorld
from .simtree import EPOCH, SECOND

OPTIONS = Options(SETTINGS, pauses=True)
FIRST = "00000000F1"


def works(desk: Desk) -> str:
    """Claim the next task and finish it, unless the board is paused."""
    try:
        claim = desk.grab()
    except Paused:
        return "paused"
    if claim is None:
        return "nothing"
    desk.done(claim)
    return "done"


def works_twice(desk: Desk) -> str:
    """The same for two tasks: the second claim does not look before its rename."""
    return works(desk) if works(desk) == "done" else "paused"


def persists(desk: Desk) -> str:
    """Try again after a pause was met, as a waiting worker does."""
    for _ in range(3):
        if works(desk) != "paused":
            return "done"
    return "paused"


def pauses(desk: Desk) -> None:
    desk.pause()


def pauses_for_a_while(desk: Desk) -> None:
    desk.pause(seconds=30)


def pauses_and_resumes(desk: Desk) -> None:
    desk.pause()
    desk.resume()


def resumes(desk: Desk) -> None:
    desk.resume()


def two(world: SimWorld) -> None:
    board(world, "t.available", "u.available")


def already_paused(world: SimWorld, host: str = "", until: float | None = None) -> None:
    """A pause that was made before the scenario began."""
    two(world)
    lay_pause(world, host, until)


def lay_pause(world: SimWorld, host: str = "", until: float | None = None) -> None:
    world.folders(PAUSED)
    pause = Pause(FIRST, "before", "why", EPOCH / SECOND, until, host)
    world.put(f"{PAUSED}/{FIRST}", encode_pause(pause))


def looks_and_renames(_: str, call: Call) -> bool:
    """Let faults strike the look for a pause, and what pauses and resumes."""
    path = call[1] if len(call) > 1 and isinstance(call[1], str) else ""
    return path.startswith(PAUSED) or (call[0] in ("rename", "link", "touch") and path[:1] != ".")


RACE = scene(
    "a pause while a worker claims",
    one,
    [Part("ann", works), Part("op", pauses, OPERATOR)],
    Faults(crashes=1, lost=1, late=1, failed=1, total=1),
    options=OPTIONS,
)
CROWD = scene(
    "a pause while two workers claim two tasks",
    two,
    [Part("ann", works_twice), Part("bob", persists), Part("op", pauses, OPERATOR)],
    Faults(crashes=1, lost=1, total=1),
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
    mode="bounded",
    preemptions=2,
)
SECOND_TASK = scene(
    "a pause between two claims of one worker",
    two,
    [Part("ann", works_twice), Part("op", pauses, OPERATOR)],
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
)
BROKEN_LOOK = scene(
    "the disk fails while a worker looks for a pause",
    one,
    [Part("ann", works), Part("op", pauses, OPERATOR)],
    Faults(failed=2),
    options=OPTIONS,
    strikes=looks_and_renames,
)
TWO_PAUSES = scene(
    "one operator resumes while another pauses",
    one,
    [
        Part("op", pauses_and_resumes, OPERATOR),
        Part("oz", pauses, OPERATOR),
        Part("ann", works),
    ],
    Faults(lost=1),
    options=OPTIONS,
    strikes=looks_and_renames,
    mode="bounded",
    preemptions=3,
)
RESUMED_TWICE = scene(
    "two operators resume, one pauses again",
    already_paused,
    [
        Part("op", resumes, OPERATOR),
        Part("oz", pauses_and_resumes, OPERATOR),
        Part("oy", pauses, OPERATOR),
        Part("ann", works),
    ],
    Faults(crashes=1, lost=1, total=1),
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
    strikes=looks_and_renames,
    mode="bounded",
    preemptions=2,
)


def _lay_ending(world: SimWorld) -> None:
    two(world)
    lay_pause(world, until=EPOCH / SECOND + 20)


ENDING = scene(
    "a pause that ends by itself, and a janitor that removes what is over",
    _lay_ending,
    [
        Part("op", pauses_for_a_while, OPERATOR),
        Part("jan", Desk.tidy, JANITOR),
        Part("ann", works),
    ],
    Faults(advances=2, advance_by=(11.0, 25.0)),
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
)


def _ended(world: SimWorld) -> None:
    two(world)
    lay_pause(world, until=EPOCH / SECOND - 5)


OVER = scene(
    "nothing is paused by a pause that is over, nor by an empty folder",
    _ended,
    [Part("ann", works), Part("jan", Desk.tidy, JANITOR), Part("op", resumes, OPERATOR)],
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
    served=True,
)
CRASH = scene(
    "a worker dies during a pause before it has looked",
    one,
    [Part("ann", works), Part("op", pauses, OPERATOR), REAPER],
    Faults(crashes=1, advances=1, advance_by=(11.0,)),
    options=OPTIONS,
    mode="bounded",
    preemptions=2,
)


def _pauses_host(desk: Desk) -> None:
    desk.pause(host="h2")


HOST = scene(
    "one host is drained, another goes on",
    two,
    [
        Part("ann", works),
        Part("far", works, host="h2"),
        Part("op", _pauses_host, OPERATOR),
    ],
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
    mode="bounded",
)
OTHER_HOST = scene(
    "a drained host does not keep another from its work",
    partial(already_paused, host="h2"),
    [Part("ann", works), Part("op", _pauses_host, OPERATOR)],
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
    served=True,
)
HOLDER = scene(
    "a holder goes on through a pause",
    held,
    [Part("ann", holder(Desk.beat, Desk.done)), Part("op", pauses, OPERATOR), REAPER],
    Faults(crashes=1, lost=1, total=1),
    options=OPTIONS,
    strikes=looks_and_renames,
    mode="bounded",
    preemptions=2,
)


def _claims_again(desk: Desk) -> str:
    """Claim one's own task again after a restart, which no pause stops."""
    try:
        claim = desk.mine(locks.resume(desk.store, "t", desk.terms(owner="ann"), MINE))
    except Paused:
        return "paused"
    assert claim is not None
    desk.done(claim)
    return "done"


def _held_and_paused(world: SimWorld) -> None:
    board(world)
    claimed(world, MINE)
    lay_pause(world)


RESTARTED = scene(
    "an owner resumes its claim during a pause",
    _held_and_paused,
    [Part("ann", _claims_again)],
    options=OPTIONS,
    served=True,
)


def _pauses_locks(desk: Desk) -> None:
    desk.pause(locks=True)


def _acquires(desk: Desk) -> str:
    try:
        return acquires()(desk)
    except Paused:
        return "paused"


LOCKS = scene(
    "a pause with its locks while one is acquired",
    board,
    [Part("ann", _acquires), Part("op", _pauses_locks, OPERATOR)],
    Faults(crashes=1, lost=1, total=1),
    options=OPTIONS,
    payloads=(),
    locks=("l",),
)
LOCKS_GO_ON = scene(
    "a pause without its locks stops no lock",
    board,
    [Part("ann", _acquires), Part("op", pauses, OPERATOR)],
    options=OPTIONS,
    payloads=(),
    locks=("l",),
    served=True,
)


class CachingPort:
    """A port as an NFS 4 client has it: what it knows of a name can be old.

    The reply to a change of a folder shows whether others have changed the folder too. If so, the
    client asks the server again for the names in it. It never does so for other reasons here.
    """

    def __init__(self, port: SimPort) -> None:
        self._port = port
        self._known = 0
        """The change attribute of the board's folder, as the last reply had it."""
        self._cache: dict[Call, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "pauses":
            self._port.pauses = value
        else:
            super().__setattr__(name, value)

    def missing(self, path: str) -> bool:
        return bool(self._cached("missing", path))

    def stat(self, path: str) -> Stat:
        found: Stat = self._cached("stat", path) if "paused" in path else self._port.stat(path)
        return found

    def names(self, folder: str) -> list[str]:
        known = "paused" in folder
        return list(self._cached("names", folder) if known else self._port.names(folder))

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        self._port.rename(src, dst, keep)
        own = ("/" not in src) + ("/" not in dst)
        after = self._port.stat("").mtime
        if after - self._known != own:
            self._cache = {call: v for call, v in self._cache.items() if call[1][:5] == ".dibs"}
        self._known = after

    def _cached(self, verb: str, path: str) -> Any:
        call = (verb, path)
        if call not in self._cache:
            if not self._cache:
                self._known = self._port.stat("").mtime
            try:
                self._cache[call] = getattr(self._port, verb)(path)
            except FileNotFoundError as error:
                self._cache[call] = error
        found = self._cache[call]
        if isinstance(found, OSError):
            raise found
        return found


def over_nfs(play: Callable[[Desk], object]) -> Callable[[Desk], object]:
    """The same behaviour on a client that caches names."""

    def run(desk: Desk) -> object:
        client: Any = CachingPort(desk.port)
        return play(Desk(client, desk.base, OPTIONS))

    return run


def _looks_first(desk: Desk) -> str:
    """Know that nothing is paused, from an earlier look; then claim."""
    desk.board.pauses()
    return works(desk)


def _on_nfs(world: SimWorld) -> None:
    world.counts_changes = True
    two(world)


CACHED = scene(
    "a client has cached that nothing is paused",
    _on_nfs,
    [Part("ann", over_nfs(_looks_first)), Part("op", pauses, OPERATOR)],
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
)


def _on_nfs_paused(world: SimWorld) -> None:
    world.counts_changes = True
    already_paused(world, "h9")


CACHED_FOLDER = scene(
    "a client has cached which pauses there are",
    _on_nfs_paused,
    [Part("ann", over_nfs(_looks_first)), Part("op", pauses, OPERATOR)],
    options=OPTIONS,
    payloads=(b"one", b"one-1"),
)
SCENARIOS = [
    *(RACE, SECOND_TASK, BROKEN_LOOK, TWO_PAUSES, ENDING, OVER, HOST, OTHER_HOST, HOLDER),
    *(RESTARTED, LOCKS, LOCKS_GO_ON, CACHED, CACHED_FOLDER, CRASH, RESUMED_TWICE, CROWD),
]
