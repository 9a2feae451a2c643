"""The port that each actor gets, and a record of how each actor behaves.

The shipped code runs in a greenlet that stops at every port call. What it does next depends only
on the answers so far, so its behaviour is a tree: a node is a sequence of answers and holds the
next call. The code runs only where the tree has to grow; elsewhere the search walks the tree. To
return to an earlier branch, the code runs again with the answers of that branch, and every call on
the way must be the same as before.
"""

from __future__ import annotations

import errno
import os
import traceback
from functools import lru_cache
from hashlib import sha256
from typing import Any

from greenlet import getcurrent, greenlet

from dibs.files.port import Stat
from dibs.model.names import PAUSED

from .scenario import Actor, Call, Outcome
from .simdisk import Err

ORDINARY, INVISIBLE, LISTING, SLEEP = range(4)
_FLAVORS = {
    "append": INVISIBLE,
    "boottime": INVISIBLE,
    "sync": INVISIBLE,
    "names": LISTING,
    "sleep": SLEEP,
}
CRASHED = Outcome("crashed", None)


class Crashed(BaseException):
    """The process died: raised by its current call, and by every later one."""


class Node:
    """An actor after one sequence of answers."""

    __slots__ = ("call", "children", "end", "flavor", "notes", "outcome", "parent", "result")

    def __init__(self, parent: Node | None, result: Any) -> None:
        self.parent = parent
        self.result = result
        self.call: Call | None = None
        """Its next call; None when it has ended."""
        self.flavor = ORDINARY
        self.children: dict[Any, Node] = {}
        self.notes: tuple[tuple[str, Any], ...] = ()
        self.end: Node = self
        """The node that represents all equal endings."""
        self.outcome: Outcome | None = None


class SimPort:
    """`dibs.files.port.Port` for one actor, plus a few calls that only shells and tests make."""

    read_only = False

    def __init__(self, name: str, host: str, script: list[tuple[Call, Any]]) -> None:
        self.name = name
        self.host = host
        self.keeps = True
        self.notes: list[tuple[str, Any]] = []
        self.dead = False
        self.strayed = ""
        self.pauses = False
        """Whether the scenario pauses the board; if not, looks for a pause are left out."""
        self._script = script
        self._hub = getcurrent()
        self._minted = 0

    def names(self, folder: str) -> list[str]:
        return list(self._ask(("names", folder)))

    def stat(self, path: str) -> Stat:
        found: Stat = self._ask(("stat", path))
        return found

    def missing(self, path: str) -> bool:
        if path == PAUSED and not self.pauses:
            return True
        try:
            self.stat(path)
        except FileNotFoundError:
            return True
        return False

    def unfit(self, path: str) -> str:
        return "" if self.stat(path).regular else "a task is a file"

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        found: tuple[bytes, Stat] = self._ask(("read", path, limit, offset))
        return found

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        self._ask(("create", path, data, sync))

    def append(self, path: str, data: bytes) -> None:
        self._ask(("append", path, data))

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        self._ask(("rename", src, dst, keep))

    def link(self, src: str, dst: str) -> None:
        self._ask(("link", src, dst))

    def unlink(self, path: str) -> None:
        self._ask(("unlink", path))

    def mkdir(self, path: str) -> None:
        self._ask(("mkdir", path))

    def rmdir(self, path: str) -> None:
        self._ask(("rmdir", path))

    def touch(self, path: str) -> None:
        self._ask(("touch", path))

    def nameless(self) -> Stat:
        raise OSError(errno.EOPNOTSUPP, "no file without a name here")

    def sync(self, path: str) -> None:
        self._ask(("sync", path))

    def boottime(self) -> int:
        now: int = self._ask(("boottime",))
        return now

    def sleep(self, seconds: float) -> None:
        """Let others run; at least this much time passes before this actor continues."""
        self._ask(("sleep", seconds))

    def nonce(self) -> str:
        self._minted += 1
        return minted(self.name, self._minted)

    def write(self, path: str, data: bytes) -> None:
        """Write as a shell's `echo > path` does: truncate first, then write."""
        self._ask(("write", path, data))

    def set_mtime(self, path: str, mtime: int) -> None:
        """Set a time as a shell's `touch -d` does."""
        self._ask(("touch", path, mtime))

    def note(self, fact: Any) -> None:
        """Give the checks a hashable fact, at once and without a scheduling point."""
        self.notes.append((self.name, fact))

    def _ask(self, call: Call) -> Any:
        if self.dead:
            raise Crashed
        if self._script:
            expected, result = self._script.pop()
            self.notes.clear()
            if call != expected:
                self.strayed = f"{self.name} called {call} where it had called {expected}"
                self.dead = True
                raise Crashed
        else:
            result = self._hub.switch(call)
        if type(result) is Err:
            raise _error(result.code, call)
        return result


class Cast:
    """Everything known about one actor."""

    def __init__(
        self, actor: Actor, quiet: tuple[str, ...], allowed: tuple[type[BaseException], ...]
    ) -> None:
        self.actor = actor
        self.sleeps = False
        """Whether it ever slept: then time moves without a choice of the scheduler."""
        self.grown = 0
        self._quiet = quiet
        self._allowed = allowed
        self._ends: dict[Any, Node] = {}
        self._live: tuple[greenlet, SimPort, Node] | None = None
        self.dead = Node(None, None)
        self.dead.outcome = CRASHED
        self.root = self._run([], None, None)

    def grow(self, node: Node, result: Any) -> Node:
        """The node after one more answer, found by running the code."""
        self.grown += 1
        live = self._live
        if live is None or live[2] is not node:
            self.kill()
            script = [(node.call, result)]
            at = node
            while at.parent is not None:
                script.append((at.parent.call, at.result))
                at = at.parent
            child = self._run(script, node, result)
        else:
            runner, port, _ = live
            port.notes.clear()
            child = self._settle(runner, port, runner.switch(result), node, result)
        node.children[result] = child
        return child

    def kill(self) -> None:
        """Make the running code crash in its current call."""
        if self._live is not None:
            runner, port, _ = self._live
            self._live = None
            port.dead = True
            runner.throw(Crashed)

    def _run(self, script: list[Any], parent: Node | None, result: Any) -> Node:
        port = SimPort(self.actor.name, self.actor.host, script)
        runner = greenlet(self._body)
        return self._settle(runner, port, runner.switch(port), parent, result)

    def _body(self, port: SimPort) -> Outcome:
        try:
            return Outcome("returned", self.actor.run(port))
        except Crashed:
            return CRASHED
        except Exception as exc:
            if not isinstance(exc, self._allowed):  # the place of the bug is wanted
                exc.add_note("".join(traceback.format_exception(exc)))
            exc.__context__ = exc.__cause__ = None
            return Outcome("raised", exc.with_traceback(None))

    def _settle(
        self, runner: greenlet, port: SimPort, said: Any, parent: Node | None, result: Any
    ) -> Node:
        if port.strayed:
            raise RuntimeError(f"the same answers, another call: {port.strayed}")
        node = Node(parent, result)
        node.notes = tuple(port.notes)
        if type(said) is Outcome:
            self._live = None
            node.outcome = said
            node.end = self._ends.setdefault(_essence(said), node)
            return node
        node.call = said
        flavor = _FLAVORS.get(said[0], ORDINARY)
        if flavor == SLEEP:
            self.sleeps = True
        if said[0] == "append":
            flavor = INVISIBLE if said[1].startswith(self._quiet) else ORDINARY
        elif said[0] in _READS and f"{said[1]}{_READS[said[0]]}".startswith(self._quiet):
            raise RuntimeError(f"{said} reads what is write-only here: set world.quiet = ()")
        node.flavor = flavor
        self._live = runner, port, node
        return node


_READS = {"names": "/", "stat": "", "read": ""}


def _essence(outcome: Outcome) -> Any:
    """A value that is equal for equal endings."""
    kind, value = outcome
    if kind == "raised":
        return kind, type(value), str(value)
    try:
        hash(value)
    except TypeError:
        return kind, id(value)
    return kind, type(value), value


@lru_cache(maxsize=4096)
def minted(name: str, count: int) -> str:
    """An actor's n-th nonce, counted from 1."""
    return sha256(f"{name}/{count}".encode()).hexdigest()[:10].upper()


def _error(code: int, call: Call) -> OSError:
    if call[0] in ("rename", "link"):
        return OSError(code, os.strerror(code), call[1], None, call[2])
    return OSError(code, os.strerror(code), call[1] if len(call) > 1 else None)
