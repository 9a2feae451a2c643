"""Shared by the hostile tests: invalid files to plant, every verb to run, a watch on escapes."""

from __future__ import annotations

import io
import os
import socket
import stat
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import dibs
from dibs import cli
from tests.core.tools import Movable, World, give, in_child, opened, settle

HOUR = 3600
KINDS = [
    *("empty", "huge", "binary", "passwd", "dangling", "itself", "fifo", "socket", "folder"),
    *("full", "sealed", "future", "bomb", "hardlink"),
]
"""Everything that a hostile user could put in a file's place."""
Verb = Callable[[dibs.Board], object]


def plant(path: Path, kind: str) -> None:
    """Replace a file with something of this kind."""
    data = path.read_bytes() if path.is_file() and not path.is_symlink() else b"x"
    if path.exists() or path.is_symlink():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    outside = _root(path).parent / "outside"
    match kind:
        case "empty":
            path.touch()
        case "huge":
            path.write_bytes(data)
            os.truncate(path, 10 << 20)
        case "binary":
            path.write_bytes(bytes(range(256)) * 8 + b"\n")
        case "passwd":
            path.symlink_to("/etc/passwd")
        case "dangling":
            path.symlink_to(outside / "nothing")
        case "itself":
            path.symlink_to(path.name)
        case "fifo":
            os.mkfifo(path)
        case "socket":
            folder = os.open(path.parent, os.O_PATH)  # a socket's path has at most 107 bytes
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(f"/proc/self/fd/{folder}/{path.name}")
            os.close(folder)
        case "folder":
            path.mkdir()
        case "full":
            path.mkdir()
            (path / "inside").write_bytes(b"keep")
        case "sealed":
            path.write_bytes(data)
            path.chmod(0)
        case "future":
            path.write_bytes(data)
            ahead = path.stat().st_mtime + HOUR
            os.utime(path, (ahead, ahead))
        case "bomb":
            path.write_bytes(b"[" * 200_000)
        case "hardlink":
            os.link(outside / "canary", path)
        case _:
            raise AssertionError(kind)


def _root(path: Path) -> Path:
    return path if path.name == "board" else _root(path.parent)


class NoWaitDisk(Movable):
    """A disk without waits: a sleep moves the clocks instead, and so ages every folder."""

    def sleep(self, seconds: float) -> None:
        super().sleep(max(seconds, 5))


class AttackedBoard:
    """A board with one of everything, with a canary outside, where a test plants invalid files."""

    def __init__(self, scratch: Path) -> None:
        self.path = scratch / "board"
        self.outside = scratch / "outside"
        self.outside.mkdir()
        (self.outside / "canary").write_bytes(b"alive")
        (self.outside / "x.f1.me-0123456789").write_bytes(b"a record, were it inside")
        (self.outside / "evil.lock").write_bytes(b"1700000000 web-3\n")
        self.world = World(scratch)
        settle(self.path)
        board = self.opened()
        for ident in ("wait", "mine", "over", "sunk", "gone"):
            board.add(ident, f"payload of {ident}".encode())
        done, mine = board.claim("over"), board.claim("mine", owner="me")
        assert done is not None
        assert mine is not None
        done.done()
        board.park("sunk.available", "no")
        board.acquire("gate").release()
        self.mine, self.door = mine.name, board.acquire("door", owner="me").name
        (self.path / "gone.available").unlink()
        (self.path / "shell.claimed").write_bytes(b"payload of shell")
        (self.path / "shell.lock").write_bytes(b"1700000000 web-3\n")
        board.reap()

    def opened(self) -> dibs.Board:
        """The board, on a disk without waits."""
        return opened(NoWaitDisk(self.path, self.world))

    def file(self, folder: str) -> Path:
        """The one file in a folder below `.dibs/`."""
        (found,) = (self.path / ".dibs" / folder).iterdir()
        return found

    def verbs(self) -> dict[str, Verb]:
        """All public verbs, the destructive ones last."""
        mine, door = self.mine, self.door

        def act_name(board: dibs.Board) -> str:
            holder = board.snapshot().holders.get("shell.claimed")
            return holder.act_name if holder else "shell.claimed"

        return {
            "snapshot": lambda b: b.snapshot(),
            "counts": lambda b: b.snapshot().counts(),
            "find": lambda b: [b.find(i) for i in ("wait", "mine", "over", "shell", "none")],
            "holder": lambda b: [b.holder(t) for t in b.snapshot().tasks.values()],
            "payload": lambda b: [_tried(b.payload, t) for t in b.snapshot().tasks.values()],
            "view": lambda b: b.view().hint(["wait.available", "x.lock", mine]),
            "status": lambda b: [b.status("door"), b.status("gate"), b.status("none")],
            "history": lambda b: [b.log.of("mine"), b.log.read()],
            "follow": lambda b: [b.log.since(), b.log.torn()],
            "check": lambda b: b.check(),
            "verify": lambda b: b.attach(mine).verify(),
            "beat": lambda b: b.attach(mine).beat(),
            "metadata": lambda b: b.attach(mine).beat(ttl=200, metadata="m"),
            "read": lambda b: b.attach(mine).payload(),
            "again": lambda b: b.acquire("door", lease=door),
            "held": lambda b: b.claim("mine"),
            "closed": lambda b: b.acquire("door", owner="you"),
            "evidence": lambda b: [_tried(b.evidence, t) for t in b.snapshot().tasks.values()],
            "resolve": lambda b: b.resolve("wait\nmine\nover\nnone"),
            "undoable": lambda b: b.undoable(),
            "reap one": lambda b: b.reap_claim(mine),
            "reap shell": lambda b: b.reap_claim(act_name(b)),
            "reap": lambda b: b.reap(),
            "repair": lambda b: b.repair(),
            "add": lambda b: b.add("new", b"payload of new"),
            "add again": lambda b: b.add("gone", b"payload of gone"),
            "claim": lambda b: _ended(b.claim(owner="me")),
            "acquire": lambda b: b.acquire("gate").release(),
            "acquire new": lambda b: b.acquire("hatch").release(),
            "prioritize": lambda b: b.prioritize("wait.available", 9),
            "resume": lambda b: b.resume("door", owner="me", name=door),
            "forget": lambda b: b.forget("gone"),
            "release": lambda b: b.attach(mine).release(),
            "force": lambda b: b.force_release(act_name(b), "why"),
            "park": lambda b: b.park("wait.f0p9.available", "why"),
            "requeue": lambda b: [b.requeue(t.name) for t in b.find("sunk")],
            "purge": lambda b: b.purge(0),
        }

    def run(self) -> list[str]:
        """Run every verb, twice and hours apart; returns what went wrong."""
        watch = Watch(self.path)
        wrong: list[str] = []
        for _ in range(2):
            for name, verb in self.verbs().items():
                try:
                    verb(self.opened())
                except dibs.DibsError as error:
                    wrong += [] if len(str(error).splitlines()) == 1 else [f"{name}: {error!r}"]
                except Exception:
                    wrong.append(f"{name}: {traceback.format_exc(limit=-3)}")
            self.world.advance(2 * HOUR)
        return wrong + watch.seen

    def run_cli(self) -> list[str]:
        """The same with the command: it must give documented exit codes and printable lines."""
        wrong: list[str] = []
        shared = NoWaitDisk(self.path, self.world)
        real = dibs.open
        stand_in: Any = lambda path, create=False: opened(shared)  # noqa: E731
        for argv in self.commands():
            out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
            dibs.open = stand_in
            try:
                with redirect_stdout(out), redirect_stderr(err):
                    code: object = cli.main(["-d", str(self.path), *argv])
                    out.flush()
            except Exception:
                wrong.append(f"{argv}: {traceback.format_exc(limit=-3)}")
                continue
            finally:
                dibs.open = real
            out.seek(0)
            printed, errors = out.read(), err.getvalue()
            if code not in range(7):
                wrong.append(f"{argv}: exit {code}")
            if code in (1, 2, 3, 5) and errors.count("\n") != 1:
                wrong.append(f"{argv}: not one line: {errors!r}")
            for line in (printed + errors).split("\n"):
                if not line.isprintable():
                    wrong.append(f"{argv}: {line!r}")
        return wrong

    def commands(self) -> list[list[str]]:
        """All commands, the destructive ones last."""
        mine, door = self.mine, self.door
        return [
            *(["ls"], ["ls", "--state", "stale"], ["log"], ["log", "mine"], ["check"]),
            *(["show", i] for i in ("wait", "mine", "shell", "door", "over", "none")),
            *(["status", "door"], ["status", "gate"], ["reap", mine], ["reap"]),
            *(["check", "--repair"], ["undo"], ["requeue", "--from", "/dev/null"]),
            *(["verify", mine], ["beat", mine], ["claim", "mine"], ["add", "new"], ["add", "mine"]),
            *(["acquire", "gate"], ["acquire", "door"], ["acquire", "door", "--lease", door]),
            *(["renew", door, "--ttl", "50"], ["claim", "--owner", "me"], ["claim", "none"]),
            *(["prioritize", "wait.available", "9"], ["release", mine], ["done", mine]),
            *(["forget", "gone"], ["force-release", "shell.claimed", "--reason", "why"]),
            *(["park", "wait.available", "--reason", "why"], ["requeue", "sunk"], ["fail", door]),
            ["purge", "--done", "--older-than", "0"],
        ]

    def canary(self) -> list[tuple[object, ...]]:
        """All files outside the board, without what a link from inside changes in them."""
        found: list[tuple[object, ...]] = []
        for path in sorted(self.path.parent.rglob("*")):
            if self.path in (path, *path.parents) or path.name == ".world":
                continue
            s = path.lstat()
            data = path.read_bytes() if path.is_file() else b""
            found.append((str(path), s.st_ino, stat.S_IFMT(s.st_mode), data))
        return found

    def problems(self, *, commands: bool = False, uid: int | None = None) -> list[str]:
        """Everything that goes wrong when every verb runs on the board; empty if all is well."""
        before, beside = self.payloads(), self.canary()
        finished = {_face(p) for p in _entries(self.path / "done")}
        if uid is not None:
            give(self.path, uid)
            give(self.path.parent / ".world", uid)
        wrong = in_child(self.run_cli if commands else self.run, uid=uid)
        if self.canary() != beside:
            wrong.append(f"outside the board: {beside} became {self.canary()}")
        # A task that was released as a lock is free, and nothing acquires it.
        free = [f".dibs/free/{sub.name}" for sub in _entries(self.path / ".dibs/free")]
        lost = before - self.payloads(".dibs/new", *free) - finished
        if commands:
            lost -= {face for face in lost if face[1] == "payload of mine"}
        return wrong + [f"lost {face}" for face in sorted(lost)]

    def payloads(self, *drafts: str) -> set[tuple[int, str]]:
        """Every payload, and everything in the place of a payload, by content or by kind."""
        found = set()
        for folder in ("", "done", "failed", *drafts):
            for path in _entries(self.path / folder):
                if path.name not in (".dibs", "done", "failed") and not path.name.endswith(".lock"):
                    found.add(_face(path))
        return found


def _entries(folder: Path) -> list[Path]:
    return [] if folder.is_symlink() or not folder.is_dir() else list(folder.iterdir())


def _face(path: Path) -> tuple[int, str]:
    status = path.lstat()
    if stat.S_ISREG(status.st_mode) and status.st_size < 1 << 20 and os.access(path, os.R_OK):
        return 0, path.read_bytes().decode("latin-1")
    return status.st_ino, stat.filemode(status.st_mode)[0]


def _tried(act: Callable[[dibs.Task], object], task: dibs.Task) -> object:
    try:
        return act(task)
    except dibs.DibsError as error:
        return error


def _ended(claim: dibs.Claim | None) -> object:
    return claim.fail("hostile") if claim is not None else None


class Watch:
    """Records every path that this process opens or changes; it cannot be switched off."""

    def __init__(self, board: Path) -> None:
        self.seen: list[str] = []
        self._root = str(board)
        self._real = os.path.realpath(board)
        self._busy = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[object, ...]) -> None:
        if self._busy or event not in _WATCHED:
            return
        self._busy = True
        try:
            flags = args[2] if event == "open" and len(args) > 2 else 0
            flags = flags if isinstance(flags, int) else 0
            if flags & os.O_EXCL:  # cannot open an existing file
                return
            safe = bool(flags & os.O_NOFOLLOW)
            for arg in args[:2] if event in ("os.rename", "os.link") else args[:1]:
                self._look(event, os.fsdecode(arg) if isinstance(arg, (str, bytes)) else "", safe)
        finally:
            self._busy = False

    def _look(self, event: str, path: str, safe: bool) -> None:
        if not path.startswith(self._root):
            return
        parent = os.path.realpath(os.path.dirname(path.rstrip("/")))
        if path.rstrip("/") != self._root and not (parent + "/").startswith(self._real + "/"):
            self.seen.append(f"{event} escaped by {path}")
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return
        if stat.S_ISLNK(mode) and safe:
            return
        if event == "open" and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            self.seen.append(f"opened {path}, a {stat.filemode(mode)[0]}")
        if event == "os.listdir" and stat.S_ISLNK(mode):
            self.seen.append(f"listed through the link {path}")


_WATCHED = {
    *("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.utime", "os.listdir"),
    *("os.chmod", "os.chown", "os.truncate", "os.rmdir", "os.symlink"),
}
