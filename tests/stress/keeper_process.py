"""A worker that is killed or stopped: `python -m tests.stress.keeper_process BOARD TTL`.

It says on stdout what it is about to do, and for each of its phases goes on when it gets a line.
"""

from __future__ import annotations

import sys

import dibs


def main(where: str, ttl: float) -> None:
    board = dibs.open(where)
    said("opened")
    try:
        with board.working(owner="worker", ttl=ttl, wait=60) as claim:
            said(f"working {claim.name}")
            try:
                claim.check()
                said("kept")
            except dibs.Lost:
                said("lost")
        said("left")
    except dibs.Lost:
        said("refused")


def said(what: str) -> None:
    print(what, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
