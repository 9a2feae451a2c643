"""Make and identify the directory of a board."""

from __future__ import annotations

import os

from dibs.model.errors import BadName, BoardMissing, NotABoard

STICKY = 0o1000


def made(root: str) -> None:
    """Make the directory if it is missing; raise if a board cannot work in it."""
    try:
        os.makedirs(root, exist_ok=True)
    except FileExistsError:
        raise NotABoard(f"{root} is not a directory: give another path") from None
    except OSError as error:
        raise BoardMissing(
            f"{root} cannot be made: {error.strerror}: make it with the rights that it needs, "
            "or give another path"
        ) from error
    refuse_sticky(root)


def refuse_inside(root: str) -> None:
    """Raise `BadName` for a directory in a board's own folders, where its files are not tasks."""
    path = os.path.realpath(root)
    while (parent := os.path.dirname(path)) != path:
        name = os.path.basename(path)
        if name in (".dibs", "done", "failed") and os.path.isdir(os.path.join(parent, ".dibs")):
            raise BadName(f"{root} is in the folder {name} of the board {parent}: give that board")
        path = parent


def refuse_sticky(root: str) -> None:
    """Raise `NotABoard` if the directory is sticky: users could not move each other's files."""
    try:
        mode = os.stat(root).st_mode
    except OSError as error:
        raise BoardMissing(f"{root}: {error.strerror}") from error
    if mode & STICKY:
        raise NotABoard(
            f"{root} is sticky, so no user could move another user's task: chmod -t it, "
            "or use a separate directory"
        )


def not_a_folder(path: str) -> str:
    """Why a folder of a board cannot be used that is a file or a link."""
    return f"{path} is not a real folder, and a board never follows links: replace it by a folder"


def identity(path: str) -> tuple[int, int] | None:
    """The device and inode of a directory; different ones mean that it was replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def stamp(path: str) -> tuple[int, int, int] | None:
    """The inode, size and mtime of a file, which change with its content; None if it is missing."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def init_command(root: str, *options: str) -> str:
    """The command line that makes a board there, from any directory."""
    import shlex  # only for an error

    return shlex.join(["dibs", "-d", root, "init", *options])
