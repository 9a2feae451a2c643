"""Runs the benchmarks, prints the tables and writes them as Markdown and JSON."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import report
from tests.bench.harness import Row
from tests.bench.places import Setup

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ("start", "live", "idle", "output", "memory", "curve", "million")
GROUPS = (
    "cycle", "fsync", "length", "herd", "waiter", "snapshot", "startup", "durability", "journals",
    "postgres", "postgres_million", "served",
    *(f"dashboard_{part}" for part in DASHBOARD),
)  # fmt: skip


def main() -> int:
    args = _arguments()
    if importlib.util.find_spec("dibs") is None:
        sys.path[:0] = [str(ROOT / "core"), str(ROOT / "tui")]
    setup = Setup(args.ram, args.disk, args.quick, os.getloadavg()[0])
    tables: dict[str, list[Row]] = {}
    for name in args.only or GROUPS:
        group = importlib.import_module(f"tests.bench.{name}")
        start = time.perf_counter()
        tables[group.TITLE] = list(group.run(setup))
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    text = report.markdown(tables, setup)
    print(text)
    out = args.out or (None if args.quick or args.only else Path(__file__).with_name("results.md"))
    if out is not None:
        out.write_text(text)
        out.with_suffix(".json").write_text(report.as_json(tables, setup))
        print(f"written: {out} and {out.with_suffix('.json').name}", file=sys.stderr)
    for rows in tables.values():
        for row in rows:
            if row.verdict not in ("ok", "shown"):
                print(f"{row.verdict}: {row.what}: {row.note}", file=sys.stderr)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no 1,000,000")
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="NAME", help=", ".join(GROUPS))
    parser.add_argument(
        "--out", type=Path, help="the file to write (default: tests/bench/results.md)"
    )
    parser.add_argument("--ram", type=Path, default=Path("/dev/shm"), help="a folder on tmpfs")
    parser.add_argument(
        "--disk", type=Path, default=Path(tempfile.gettempdir()), help="a folder on a real disk"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
