"""Every call that the files engine makes on a file system; tests put their own port here."""

import stat as modes
from typing import NamedTuple, Protocol


class Stat(NamedTuple):
    """A result of `lstat`, with times in nanoseconds of the file system's own clock."""

    ino: int
    dev: int
    mode: int
    size: int
    mtime: int
    ctime: int
    links: int = 1
    """How many names the file has."""

    @property
    def regular(self) -> bool:
        return modes.S_ISREG(self.mode)

    @property
    def folder(self) -> bool:
        return modes.S_ISDIR(self.mode)


class Port(Protocol):
    """All access of dibs to the disk, the clock and random numbers."""

    read_only: bool
    """Whether the board was opened read-only."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in no particular order."""

    def stat(self, path: str) -> Stat:
        """`lstat`: never follows a link."""

    def missing(self, path: str) -> bool:
        """Whether no file has that name; an error if that cannot be found out."""

    def unfit(self, path: str) -> str:
        """Why a file cannot be used as a payload; empty if it can be read."""

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        """At most `limit` bytes of a regular file, with the times that `fstat` reports for it."""

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        """Create a file with the board's mode; FileExistsError if the name is taken."""

    def append(self, path: str, data: bytes) -> None:
        """One write at the end of a file, which is created if it is missing."""

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        """`rename`; with `keep`, raise EEXIST instead of replacing a file at the destination."""

    def link(self, src: str, dst: str) -> None:
        """Give a file a second name; EEXIST if that name is taken."""

    def unlink(self, path: str) -> None:
        """Remove one name."""

    def mkdir(self, path: str) -> None:
        """Make a folder with the board's mode; nothing happens if it exists."""

    def rmdir(self, path: str) -> None:
        """Remove an empty folder."""

    def touch(self, path: str) -> None:
        """Set a file's times to the current time of the file system's own clock."""

    def nameless(self) -> Stat:
        """The times of a new file without a name; an error where the file system has none."""

    def sync(self, path: str) -> None:
        """Make a file, or a folder's names, durable."""

    def boottime(self) -> int:
        """Nanoseconds on a clock that runs through suspend and is never set."""

    def sleep(self, seconds: float) -> None:
        """Wait before a storage error is tried again."""

    def nonce(self) -> str:
        """Ten hex digits that no other operation gets."""
