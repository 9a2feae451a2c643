"""Claim to done in one process, compared with bare system calls and with every peer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.bench import trace
from tests.bench.bare import Bare
from tests.bench.harness import Contender, Limit, Row, compare, interleave
from tests.bench.ours import Dibs
from tests.bench.peers import PEERS, Missing
from tests.bench.places import Setup, kind, scratch

TITLE = "Claim to done, one process"

_LEVELS = ("off", "normal")
_DEFAULT = "read"
"""The contender for the peers: a board with default settings, and the payload is read."""


def run(setup: Setup) -> Iterator[Row]:
    yield from _on(setup.ram, setup, judged=True)
    yield from _on(setup.disk, setup, judged=False)


def _on(place: Path, setup: Setup, judged: bool) -> Iterator[Row]:
    missing = []
    chunks = dict.fromkeys((*_LEVELS, *(f"bare {level}" for level in _LEVELS), _DEFAULT), 500)
    with scratch(place) as where, ExitStack() as ends:
        contenders: dict[str, Contender] = {_DEFAULT: Dibs(_sub(where, _DEFAULT), payload=True)}
        for level in _LEVELS:
            contenders[level] = Dibs(_sub(where, level), level)
            contenders[f"bare {level}"] = Bare(_sub(where, f"bare {level}"), level)
        for peer in PEERS:
            try:
                contender = contenders[peer.name] = peer.make(_sub(where, peer.name))
            except Missing as error:
                what = f"claim, read, done ({kind(place)})"
                missing.append(Row(what, against=peer.name, note=str(error)))
                continue
            ends.callback(getattr(contender, "close", lambda: None))
            chunks[peer.name] = peer.chunk
        if judged:
            times = interleave(contenders, setup.amount(25, 5), chunks)
        else:
            chunks = {name: count // 5 for name, count in chunks.items()}
            times = interleave(contenders, setup.amount(15, 5), chunks, os.sync)
    yield from _against_bare(place, times, judged)
    for peer in PEERS:
        if peer.name in times:
            yield compare(
                f"claim, read, done ({kind(place)})",
                times[_DEFAULT],
                peer.name,
                times[peer.name],
                Limit("below", 1.0) if judged and peer.judged else None,
                note=f"{peer.name}: {peer.note}" if judged else "",
            )
    yield from missing


def _against_bare(place: Path, times: dict[str, list[float]], judged: bool) -> Iterator[Row]:
    for level in _LEVELS:
        what = f"claim and done, durability {level} ({kind(place)})"
        flaw = trace.differences(level, place)
        if flaw:
            yield Row(what, note=flaw)
            continue
        limit = Limit("at most", 2.0) if judged else None
        yield compare(
            what, times[level], "the same system calls, bare", times[f"bare {level}"], limit
        )


def _sub(where: Path, name: str) -> Path:
    made = where / name.replace(" ", "-")
    made.mkdir()
    return made
