"""The system calls of claim and done: `python -m tests.bench.trace [off|normal|strict]`.

Both dibs and the bare loop do one operation between two marks under `strace`; parts that differ
between operations (serial numbers, nonces, the folder) are blanked out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.harness import Contender
from tests.bench.places import scratch

ROOT = Path(__file__).resolve().parents[2]
_MARK = "/dibs-bench-mark"
_NOISE = ("mmap", "munmap", "brk", "madvise", "futex", "rt_sig", "mremap")
_BLANKS = (
    (re.compile(r"<[^>]*>"), ""),
    (re.compile(r"\\x[0-9a-f]{2}|\\[0-7]{1,3}"), ""),
    (re.compile(r"task-[0-9]{7}"), "TASK"),
    (re.compile(r"bench-[0-9A-F]{10}"), "bench-NONCE"),
    (re.compile(r"journal/[^\"]*"), "journal/HOST"),
    (re.compile(r"0x[0-9a-f]+|\{st_mode.*?\}"), "…"),
)


def calls(what: str, durability: str, place: Path) -> list[str]:
    """The calls of one claim and one done in `strace`, in order."""
    with scratch(place) as where:
        board, log = where / "board", where / "strace"
        board.mkdir()
        worker = [sys.executable, "-m", "tests.bench.trace", what, durability, str(board)]
        subprocess.run(
            ["strace", "-y", "-o", str(log), *worker],
            check=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        lines = log.read_text().split(_MARK)[1].splitlines()[1:-1]
        return [
            _blank(line.replace(f"{board}/", "")) for line in lines if not line.startswith(_NOISE)
        ]


def differences(durability: str, place: Path) -> str:
    """Why the bare loop is no baseline for this dibs; empty if it is."""
    if shutil.which("strace") is None:
        return ""
    ours, bare = calls("dibs", durability, place), calls("bare", durability, place)
    if ours == bare:
        return ""
    first = next(
        (pair for pair in zip(ours, bare, strict=False) if pair[0] != pair[1]),
        (f"{len(ours)} calls", f"{len(bare)} calls"),
    )
    return f"dibs and tests/bench/bare.py make different calls: {first[0]} against {first[1]}"


def _blank(line: str) -> str:
    """The call without the parts that differ each time: `write` keeps no bytes and no count."""
    if line.startswith("write("):
        return "write"
    for pattern, blank in _BLANKS:
        line = pattern.sub(blank, line)
    return line.rpartition(" = ")[0].rstrip()


def _once(what: str, durability: str, where: Path) -> None:
    from tests.bench.bare import Bare
    from tests.bench.ours import Dibs

    contender: Contender = (Dibs if what == "dibs" else Bare)(where, durability)
    contender.fill(3)
    contender.run(2)
    if isinstance(contender, Bare):
        contender.lists = False
    os.access(_MARK, 0)
    contender.run(1)
    os.access(_MARK, 0)


def main(args: Sequence[str]) -> int:
    if len(args) == 3:
        _once(args[0], args[1], Path(args[2]))
        return 0
    for durability in args or ("off", "normal", "strict"):
        print(f"{durability}:")
        for call in calls("dibs", durability, Path("/dev/shm")):
            print(f"    {call}")
        print(differences(durability, Path("/dev/shm")) or "tests/bench/bare.py makes the same")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
