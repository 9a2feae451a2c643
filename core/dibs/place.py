"""Where a board lies: its path, and the directory itself where it has to be made."""

from __future__ import annotations

import os

from dibs.errors import BoardMissing, NotABoard

STICKY = 0o1000


def located(path: str | os.PathLike[str]) -> str:
    """The whole path of a directory, wherever one is oneself."""
    try:
        root = os.path.abspath(os.fspath(path))
    except OSError as error:  # the current directory is gone
        raise BoardMissing(f"the current directory: {error.strerror}: go to another") from None
    if "\0" in root:
        raise BoardMissing("a path cannot hold a NUL: give the directory that holds the tasks")
    return root


def made(root: str) -> None:
    """Make the directory where it is missing; refused where no board can work in it."""
    try:
        os.makedirs(root, exist_ok=True)
    except FileExistsError:
        raise NotABoard(f"{root} is not a directory: give another path") from None
    except OSError as error:
        raise BoardMissing(f"{root} cannot be made: {error.strerror}") from error
    refuse_sticky(root)


def refuse_sticky(root: str) -> None:
    """Refuse to make a board of a directory in which users cannot move each other's files."""
    try:
        mode = os.stat(root).st_mode
    except OSError as error:
        raise BoardMissing(f"{root}: {error.strerror}") from error
    if mode & STICKY:
        raise NotABoard(
            f"{root} is sticky, so nobody could move another user's task: chmod -t it, "
            "or use a folder of its own"
        )
