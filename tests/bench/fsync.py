"""Claim to done with all fsyncs of the board, compared with the same bare calls."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tests.bench import trace
from tests.bench.bare import Bare
from tests.bench.harness import Contender, Limit, Row, compare, interleave
from tests.bench.ours import Dibs
from tests.bench.places import Setup, kind, scratch

TITLE = "Claim to done with fsync"


def run(setup: Setup) -> Iterator[Row]:
    for durability in ("normal", "strict"):
        what = f"claim and done, {durability} ({kind(setup.disk)})"
        flaw = trace.differences(durability, setup.disk)
        if flaw:
            yield Row(what, note=flaw)
            continue
        with scratch(setup.disk) as where:
            ours, bare = where / "dibs", where / "bare"
            ours.mkdir()
            bare.mkdir()
            contenders: dict[str, Contender] = {
                "dibs": Dibs(ours, durability),
                "bare": Bare(bare, durability),
            }
            times = interleave(contenders, setup.amount(40, 8), 25, os.sync)
        yield compare(
            what, times["dibs"], "the same system calls, bare", times["bare"], Limit("at most", 2.0)
        )
