"""The pointer `dibs.toml`, which names a board, and git's common directory, where it may be.

Everything that is read here may have been written by anyone.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from typing import Any, NamedTuple

from dibs.model.addresses import without_password
from dibs.model.errors import BadName, Exists, NoBoard, short, storage_error
from dibs.model.names import match_scheme

POINTER = "dibs.toml"
TOML_BYTES = 4096
_GIT_BYTES = 8192
"""git writes one path into `.git` and into `commondir`."""
_CHARS = 2048
_WORLD_WRITABLE = 0o002
_match_written = re.compile(rb'(?:#[ -~]*\n)*board = "([^"\\\x00-\x1f\x7f]+)"\n').fullmatch
"""Matches what `init` writes, and most of what people write."""


class Pointer(NamedTuple):
    """A `dibs.toml`, and the board that it names."""

    file: str
    where: str
    """An absolute path, or a URL."""


def read_pointer(folder: str) -> Pointer | None:
    """The pointer in a directory; None without one. A bad one is refused, never passed over."""
    file = os.path.join(folder, POINTER)
    try:
        entry = os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(error) from error
    refuse_planted(os.stat(folder), entry, file)
    if not stat.S_ISREG(entry.st_mode):
        raise BadName(f"{file} is not a plain file: replace it by one, or remove it")
    try:
        data = _read(file, TOML_BYTES + 1)
    except OSError as error:
        raise storage_error(error) from error
    return Pointer(file, _board_named_by(data, file))


def refuse_address(pointer: Pointer) -> None:
    """Refuse a URL that a file in the tree names: it would receive this user's token or password.

    Whoever wrote a repository that was cloned must not choose it; git's own directory was not.
    """
    if match_scheme(pointer.where):
        raise BadName(
            f"{pointer.file} names {short(without_password(pointer.where))}, which would receive "
            "your token or password: name it yourself with `dibs -d URL VERB` or $DIBS_BOARD, or "
            "with `dibs init URL` in a git repository"
        )


def refuse_planted(folder: os.stat_result, entry: os.stat_result, path: str) -> None:
    """Raise `NoBoard` if a stranger may have put that entry into a directory of everyone.

    A pointer or board in /tmp would catch everyone who works below it.
    """
    if folder.st_mode & _WORLD_WRITABLE and entry.st_uid not in (os.geteuid(), 0):
        raise NoBoard(
            f"{path} is another user's (uid {entry.st_uid}), in a directory that every user can "
            "write, so it is not followed: name the board with `dibs -d BOARD VERB` or $DIBS_BOARD"
        )


def common_directory(folder: str) -> str:
    """The directory that all worktrees of the repository share whose top this is; else empty.

    The files are read without git, as gitrepository-layout(5) describes them. What git itself
    would refuse counts as no repository.
    """
    try:
        own = _git_directory(os.path.join(folder, ".git"))
        if not own:
            return ""
        try:
            common = _path_in(_read(os.path.join(own, "commondir"), _GIT_BYTES), own)
        except FileNotFoundError:
            common = own
        common = os.path.realpath(common)
    except (OSError, ValueError):
        return ""
    return common if _is_repository(common) else ""


def repository_of(folder: str) -> tuple[str, str]:
    """The top of the repository that a directory is in, and its common directory; else empty.

    `GIT_DIR` is not asked: a hook leaves it in the environment of commands that work elsewhere.
    """
    while True:
        if common := common_directory(folder):
            return folder, common
        if _is_repository(folder):  # a bare one
            return folder, folder
        above = os.path.dirname(folder)
        if above == folder:
            return "", ""
        folder = above


def write_pointer(common: str, where: str) -> tuple[str, bool]:
    """Let the pointer in a repository's common directory name a board; whether it is new.

    The process that creates the file first decides; `Exists` if it names another board.
    """
    file = os.path.join(common, POINTER)
    draft = f"{file}.{os.getpid()}.{os.urandom(4).hex()}"
    data = _content(common, where)
    try:
        with open(draft, "xb") as opened:
            opened.write(data)
        try:
            os.link(draft, file)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: a rename would replace another's file
            with open(file, "xb") as opened:
                opened.write(data)
    except FileExistsError:
        pointer = read_pointer(common)
        if pointer is not None and not same(pointer.where, where):
            raise Exists(
                f"{file} names the board {without_password(pointer.where)}, not "
                f"{without_password(where)}: change or remove that file to use the other"
            ) from None
        return file, False
    except OSError as error:
        raise storage_error(error) from error
    finally:
        with suppress(OSError):
            os.unlink(draft)
    return file, True


def same(one: str, other: str) -> bool:
    """Whether two locations are the same board, by what they are called but for a password."""
    if match_scheme(one) or match_scheme(other):
        return without_password(one) == without_password(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _content(common: str, where: str) -> bytes:
    """The file; its path is relative where the board moves together with the repository.

    It has no password: everyone who may read the repository may read it.
    """
    text = without_password(where)
    if not match_scheme(where):
        beside, board = os.path.dirname(common), os.path.realpath(where)
        hidden = os.path.basename(common).startswith(".")  # .git or .bare, not repository.git
        inside = os.path.commonpath((beside, board)) == beside != os.sep
        text = os.path.relpath(board, common) if hidden and inside else where
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    try:
        if not text.isprintable():
            raise ValueError
        lines = ("# All worktrees of this repository use this board.", f'board = "{quoted}"', "")
        return "\n".join(lines).encode()
    except ValueError:  # a surrogate is not printable either
        raise BadName(
            f"{text!r} cannot be written into {POINTER}: give a path of printable UTF-8 text"
        ) from None


def _board_named_by(data: bytes, file: str) -> str:
    """The board that the content of a pointer names."""
    fix = "correct or remove it"
    if len(data) > TOML_BYTES:
        raise BadName(f"{file} is larger than {TOML_BYTES} bytes: {fix}")
    try:
        table = _parsed(data)
    except RecursionError:
        raise BadName(f"{file} is nested too deeply: {fix}") from None
    except ValueError as error:
        from dibs.model.settings import why_invalid

        raise BadName(f"{file}{why_invalid(data, error)}: {fix}") from None
    text = table.pop("board", None)
    if table:
        raise BadName(f"{file}: there is no key {short(next(iter(table)))}, only board: {fix}")
    if not isinstance(text, str) or not text:
        raise BadName(f'{file}: board must be a path or a URL, as board = "tasks": {fix}')
    if len(text) > _CHARS or not text.isprintable():
        raise BadName(
            f"{file}: board must be at most {_CHARS} printable characters, got "
            f"{short(without_password(text))}: {fix}"
        )
    if text.startswith("~"):
        raise BadName(f"{file}: board is {short(text)}, but ~ is not expanded: write the full path")
    if match_scheme(text):
        return text
    return os.path.normpath(os.path.join(os.path.dirname(file), text))


def _parsed(data: bytes) -> dict[str, Any]:
    written = _match_written(data)
    if written is not None:  # saves the import of a parser
        return {"board": written[1].decode()}
    import tomllib

    return tomllib.loads(data.decode())


def _is_repository(folder: str) -> bool:
    return all(os.path.lexists(os.path.join(folder, part)) for part in ("HEAD", "objects", "refs"))


def _git_directory(path: str) -> str:
    """The git directory that `.git` is, or that a file of that name leads to; else empty."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return path
    if not stat.S_ISREG(mode):
        return ""
    data = _read(path, _GIT_BYTES)
    prefix = b"gitdir: "
    return _path_in(data.removeprefix(prefix), os.path.dirname(path)) if data[:8] == prefix else ""


def _path_in(data: bytes, base: str) -> str:
    """The path in a file of git; ValueError if it is none."""
    text = os.fsdecode(data.rstrip(b"\r\n"))
    if not text or len(data) >= _GIT_BYTES or any(char < " " for char in text):
        raise ValueError("not a path")
    return os.path.join(base, text)


def _read(path: str, limit: int) -> bytes:
    """The beginning of a plain file; an error for anything else, and it never waits."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", path)
        return os.read(fd, limit)
    finally:
        os.close(fd)
