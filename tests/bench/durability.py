"""The cost of each durability setting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.bench.harness import Contender, Row, compare, interleave
from tests.bench.ours import Adding, Dibs
from tests.bench.places import Setup, kind, scratch

TITLE = "Durability"

_LEVELS = ("off", "normal", "strict")


def run(setup: Setup) -> Iterator[Row]:
    for place, chunk in ((setup.ram, 200), (setup.disk, 20)):
        with scratch(place) as where:
            contenders: dict[str, Contender] = {}
            for level in _LEVELS:
                contenders[f"add, {level}"] = Adding(_sub(where, f"add-{level}"), level)
                contenders[f"claim and done, {level}"] = Dibs(_sub(where, f"done-{level}"), level)
            times = interleave(contenders, setup.amount(25, 5), chunk, os.sync)
        for name, found in times.items():
            against = f"{name.partition(',')[0]}, off"
            yield compare(f"{name} ({kind(place)})", found, against, times[against])


def _sub(where: Path, name: str) -> Path:
    made = where / name
    made.mkdir()
    return made
