"""`python -m tests.filesystems.racer DIR OWNER`: at a line on stdin claim and finish what waits."""

from __future__ import annotations

import sys

import dibs


def main(path: str, owner: str) -> None:
    """Print every claim that was finished, one a line."""
    board = dibs.open(path)
    board.snapshot()
    print("ready", flush=True)
    sys.stdin.readline()
    while (claim := board.claim(owner=owner)) is not None:
        claim.done()
        print(claim.id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
