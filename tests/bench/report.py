"""The tables of the results, as Markdown and as JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.bench.harness import Limit, Row
from tests.bench.peers import PEERS, version
from tests.bench.places import Setup, kind

_HEAD = "| what | measured | baseline | ratio | limit | verdict |\n|---|---|---|---|---|---|\n"
_TIMES = ((1.0, "s", 1.0), (1e-3, "ms", 1e3), (0.0, "µs", 1e6))


def amount(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit != "s":
        return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"
    for least, name, factor in _TIMES:
        if abs(value) >= least:
            return f"{value * factor:.3g} {name}"
    raise AssertionError("the last step accepts every value")


def markdown(tables: Mapping[str, Sequence[Row]], setup: Setup) -> str:
    text = [
        "# Benchmarks\n",
        "Written by `python -m tests.bench`; not edited by hand. Every ratio is the median over "
        "interleaved rounds of the two things measured in the same round, with its quartiles; "
        "the absolute numbers belong to this machine and this hour. `OVER` is past its limit, "
        "`shown` has none.\n",
        "".join(f"* {key}: {value}\n" for key, value in _circumstances(setup).items()),
    ]
    for title, rows in tables.items():
        text.append(f"## {title}\n")
        text.append(_HEAD + "".join(map(_line, rows)))
        notes = [f"* {row.what}: {row.note}\n" for row in rows if row.note]
        if notes:
            text.append("".join(notes))
    return "\n".join(text)


def as_json(tables: Mapping[str, Sequence[Row]], setup: Setup) -> str:
    groups: dict[str, Any] = {
        title: [row._asdict() | {"verdict": row.verdict} for row in rows]
        for title, rows in tables.items()
    }
    return json.dumps({"circumstances": _circumstances(setup), "groups": groups}, indent=1) + "\n"


def _line(row: Row) -> str:
    baseline = f"{amount(row.baseline, row.unit)} ({row.against})" if row.against else "-"
    ratio = "-"
    if row.ratio is not None:
        ratio = f"{row.ratio.mid:.2f} ({row.ratio.low:.2f} to {row.ratio.high:.2f})"
    verdict = row.verdict if row.verdict in ("ok", "shown") else f"**{row.verdict}**"
    cells = (row.what, amount(row.measured, row.unit), baseline, ratio, _limit(row), verdict)
    return "| " + " | ".join(cells) + " |\n"


def _limit(row: Row) -> str:
    limit: Limit | None = row.limit
    if limit is None:
        return "-"
    value = amount(limit.value, row.unit) if limit.of == "measured" else f"{limit.value:g}"
    return f"{limit.kind} {value}"


def _circumstances(setup: Setup) -> dict[str, str]:
    peers = {}
    for peer in PEERS:
        if peer.distribution:
            try:
                peers[peer.distribution] = version(peer)
            except importlib.metadata.PackageNotFoundError:
                peers[peer.distribution] = "NOT INSTALLED"
    return {
        "when": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC{', --quick' if setup.quick else ''}",
        "machine": f"{platform.system()} {platform.release()}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load {setup.load:.1f} at the start and "
        f"{os.getloadavg()[0]:.1f} at the end",
        "Python": sys.version.split()[0],
        "judged on": f"{setup.ram} ({kind(setup.ram)})",
        "fsync measured on": f"{setup.disk} ({kind(setup.disk)})",
        "peers": ", ".join(map(" ".join, peers.items())),
    }
