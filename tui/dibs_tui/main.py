"""The console script `dibs`: a worker's verb must start fast, so nothing heavy is imported here."""

import sys

from dibs.cli import main as run


def main() -> int:
    """Hand the command line to the core's verbs, which also print the board as text."""
    return run(sys.argv[1:])
