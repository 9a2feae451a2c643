"""One of many processes that want a slot of one lock: `slot_candidate.py BOARD FOLDER SLOTS`.

While it holds a slot, it has the kernel's lock on that slot's file, which ends with the process.
So a second holder of the slot notices the first one, whatever the board says.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

import dibs


def main() -> None:
    """Hold a slot again and again, and write a line each time; ends with the parent."""
    where, folder, slots = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    board, parent = dibs.open(where), os.getppid()
    lines = os.open(folder / "lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    while os.getppid() == parent:
        try:
            claim = board.acquire("gpu", slots=slots, owner="c", process=os.getpid(), ttl=60)
        except (dibs.Held, dibs.Stop):  # a process that was stopped for long gets the latter
            board.pause(0.2)
            continue
        with open(folder / f"slot-{claim.slot}", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                what = "alone"
            except BlockingIOError:
                what = "beside"
            os.write(lines, f"{claim.slot} {claim.fence} {what}\n".encode())
            for _ in range(20):
                os.sched_yield()
        with suppress(dibs.Stop):
            claim.release()


main()
