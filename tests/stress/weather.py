"""Shared by the storms: their command line, their start and end, and the text of a verdict."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.patience import PATIENCE
from tests.stress import library
from tests.stress.crew import Scene
from tests.stress.crowd import Crowd
from tests.stress.ledger import Ledger, boottime

Plan = TypeVar("Plan")
Verdict = TypeVar("Verdict")


@contextmanager
def weather(crowd: Crowd, scene: Scene, kind: str) -> Iterator[Ledger]:
    """Run a storm on the scene, with its ledger; on exit the crew finishes and stops."""
    outside, start = Ledger(scene.ledger), boottime()
    yield outside
    crowd.word()
    library.halt_file(scene).touch()
    crowd.join(PATIENCE)
    outside.close()
    print(f"{(boottime() - start) / 1e9:.0f} s of {kind}, seed {scene.seed}, {scene.board}")


def asked(
    doc: str | None,
    plan: Callable[..., Plan],
    options: Sequence[str],
    storm: Callable[[Path, Plan], Verdict],
) -> Verdict:
    """The plan and the directory that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option in options:
        number = getattr(plan(), option)
        parser.add_argument(f"--{option}", type=type(number), default=number)
    parser.add_argument("--dir", type=Path, help="a new directory (default: a temporary one)")
    given = vars(parser.parse_args())
    where: Path | None = given.pop("dir")
    if where is not None:
        where.mkdir()
        return storm(where, plan(**given))
    with tempfile.TemporaryDirectory(prefix="storm-") as scratch:
        return storm(Path(scratch), plan(**given))


def summary(faults: Sequence[str], figures: Mapping[str, int]) -> str:
    """One line for each fault, and one for all figures."""
    shown = ", ".join(f"{number} {what}" for what, number in figures.items())
    return "".join(f"FAULT {line}\n" for line in faults) + shown
