"""`python -m tests.stress.syscalls [--full] [NAME…]`: break every system call of every verb."""

from __future__ import annotations

import argparse
import time

from tests.stress.syscalls.runner import everything, run_all
from tests.stress.syscalls.tracer import why_not


def main() -> int:
    """Print what was tried and everything that was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress.syscalls", description=__doc__)
    parser.add_argument(
        "--full",
        action="store_true",
        help="every error at every call (default: one error at each call)",
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="names of scenarios (default: all)"
    )
    args = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"NOTHING WAS TESTED: {reason}")
        return 2
    start = time.monotonic()
    result = run_all(args.names or everything(), full=args.full, workers=args.workers)
    for trouble in result.troubles:
        print(trouble)
    took = time.monotonic() - start
    print(f"{result.runs} broken runs, {len(result.troubles)} troubles, {took:.0f} s")
    return 1 if result.troubles else 0


if __name__ == "__main__":
    raise SystemExit(main())
