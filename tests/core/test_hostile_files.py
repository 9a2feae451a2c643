"""Each file of a board is replaced by something hostile: typed errors, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dibs.model import names
from dibs.model.task import FREE, Stamp
from tests.core.hostile import KINDS, AttackedBoard, plant
from tests.core.tools import NOBODY

PLACES: dict[str, Callable[[AttackedBoard], Path]] = {
    "record": lambda victim: victim.path / ".dibs/records" / victim.mine,
    "record of a lock": lambda victim: victim.path / ".dibs/records" / victim.door,
    "shell lock": lambda victim: victim.path / "shell.lock",
    "lone lock": lambda victim: victim.path / "lone.lock",
    "waiting payload": lambda victim: victim.path / "wait.available",
    "claimed payload": lambda victim: victim.path / f"{victim.mine}.claimed",
    "shell payload": lambda victim: victim.path / "shell.claimed",
    "shell task": lambda victim: victim.path / "v1.2.available",
    "done payload": lambda victim: next((victim.path / "done").iterdir()),
    "failed payload": lambda victim: next((victim.path / "failed").iterdir()),
    "free lock": lambda victim: victim.path / names.unclaimed_name("gate", Stamp(1), FREE),
    "held lock": lambda victim: victim.path / f"{victim.door}.held",
    "probe": lambda victim: victim.path / ".dibs/probe",
    "journal": lambda victim: victim.file("journal"),
    "another journal": lambda victim: victim.path / ".dibs/journal/other.jsonl",
    "witness": lambda victim: victim.file("witness"),
    "known": lambda victim: victim.path / ".dibs/known/wait.0",
    "known of a vanished id": lambda victim: victim.path / ".dibs/known/gone.0",
    "a second known": lambda victim: victim.path / ".dibs/known/gone.1",
    "gone": lambda victim: victim.path / ".dibs/gone/gone.0",
    "draft": lambda victim: victim.path / ".dibs/new/gone.task.0123456789",
    "temporary": lambda victim: victim.path / ".dibs/new/0123456789",
    "count": lambda victim: victim.path / ".dibs/plain/shell",
    "past": lambda victim: victim.path / ".dibs/past/over.f1",
    "aside": lambda victim: victim.path / ".dibs/aside/x.f0.dibs-0123456789",
    "settings": lambda victim: victim.path / ".dibs/board.toml",
    "stranger": lambda victim: victim.path / "notes.txt",
}


GROUPS = [
    ("record", "shell lock", "journal", "known"),
    ("record of a lock", "lone lock", "waiting payload", "witness"),
    ("claimed payload", "done payload", "another journal", "gone"),
    ("shell payload", "failed payload", "probe", "a second known"),
    ("shell task", "free lock", "draft", "count", "past"),
    ("held lock", "temporary", "aside", "known of a vanished id", "stranger"),
    ("settings",),
]
"""Groups of places that hardly affect each other, so that one board tests several."""
groups = pytest.mark.parametrize("group", GROUPS, ids=", ".join)


def problems(scratch: Path, group: tuple[str, ...], kind: str, *, commands: bool) -> list[str]:
    victim = AttackedBoard(scratch)
    for place in group:
        plant(PLACES[place](victim), kind)
    uid = NOBODY if kind == "sealed" and os.geteuid() == 0 else None
    return victim.problems(commands=commands, uid=uid)


def test_every_place_is_in_a_group() -> None:
    assert sorted(place for group in GROUPS for place in group) == sorted(PLACES)


@pytest.mark.parametrize("kind", KINDS)
@groups
def test_each_verb_survives_hostile_files(scratch: Path, group: tuple[str, ...], kind: str) -> None:
    assert problems(scratch, group, kind, commands=False) == []


@pytest.mark.parametrize("kind", ["binary", "passwd", "fifo", "full", "sealed", "bomb", "future"])
@groups
def test_each_command_survives_hostile_files(
    scratch: Path, group: tuple[str, ...], kind: str
) -> None:
    assert problems(scratch, group, kind, commands=True) == []


def test_an_intact_board_serves_every_verb(scratch: Path) -> None:
    assert AttackedBoard(scratch).problems() == []
