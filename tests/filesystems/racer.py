"""`python -m tests.filesystems.racer DIR OWNER`: on a line of stdin claims and finishes tasks."""

from __future__ import annotations

import sys

import dibs


def main(path: str, owner: str) -> None:
    """Print every finished claim, one per line."""
    board = dibs.open(path)
    board.snapshot()
    print("ready", flush=True)
    sys.stdin.readline()
    while (claim := board.claim(owner=owner)) is not None:
        claim.done()
        print(claim.id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
