"""The files that commands of `dibs run` get: for their results, and copies of payloads."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from dibs.model.errors import BadName

VARIABLE = "DIBS_RESULT"
_PLACES = ("/tmp", "/var/tmp")


class ResultFolder:
    """A private folder outside the board; a command creates its file only if it has a result."""

    def __init__(self) -> None:
        self.path = _made()
        """Empty if no folder could be made."""
        self._count = 0

    def next(self) -> str:
        """The path for the next command; empty without a folder."""
        self._count += 1
        return f"{self.path}/{self._count}" if self.path else ""

    def remove(self) -> None:
        """Remove the folder with what is left in it."""
        clear(self.path)


def take(path: str) -> bytes | None:
    """The result that a command wrote; None if it wrote none, `BadName` if it cannot be used."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadName(f"its result cannot be read: {error.strerror}") from error
    from dibs.model.outputs import RESULT_BYTES  # most commands have no result

    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise BadName("its result is not a file")
        if found.st_size > RESULT_BYTES:
            raise BadName(f"its result has {found.st_size:,} bytes, more than {RESULT_BYTES:,}")
        return os.pread(fd, RESULT_BYTES, 0)
    finally:
        os.close(fd)


def copy(path: str, data: bytes) -> str:
    """The path of a new file with this content."""
    with open(path, "xb") as file:
        file.write(data)
    return path


def clear(path: str) -> None:
    """Remove a folder of results; subfolders are left alone."""
    if not path:
        return
    with suppress(OSError):
        for name in os.listdir(path):
            os.unlink(f"{path}/{name}")
    with suppress(OSError):
        os.rmdir(path)


def _made() -> str:
    for place in (os.environ.get("TMPDIR", ""), *_PLACES):
        path = f"{place}/dibs-{os.getpid()}-{os.urandom(5).hex()}"
        with suppress(OSError):
            if place.startswith("/"):
                os.mkdir(path, 0o700)
                return path
    return ""
