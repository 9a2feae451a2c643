"""A moment on the two clocks of a board: the file system's and the boot-time clock."""

from typing import NamedTuple

SECOND = 1_000_000_000


class Sample(NamedTuple):
    """The two clocks, read at the same moment, in nanoseconds.

    >>> board.snapshot().now.fs > 0
    True
    """

    fs: int
    boot: int


def from_the_future(beat: int, now: Sample) -> bool:
    """Whether a heartbeat is later than the file system's clock can explain."""
    return beat - now.fs > 2 * SECOND
