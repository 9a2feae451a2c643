"""The identity of a process: host, boot, pid namespace, pid and start time."""

from typing import NamedTuple


class Process(NamedTuple):
    """One process, identified for good: a pid alone may be reused.

    >>> me = board.host.process(os.getpid())
    >>> board.claim(process=me).record.process == me
    True
    """

    host: str
    boot: str
    pidns: str
    pid: int
    start: int
