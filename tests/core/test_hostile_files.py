"""Each file of a board replaced by something foul: typed errors, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dibs import names
from tests.core.hostile import KINDS, Den, plant
from tests.core.tools import NOBODY

PLACES: dict[str, Callable[[Den], Path]] = {
    "record": lambda den: den.path / ".dibs/records" / den.mine,
    "record of a lock": lambda den: den.path / ".dibs/records" / den.door,
    "shell lock": lambda den: den.path / "shell.lock",
    "lone lock": lambda den: den.path / "lone.lock",
    "waiting payload": lambda den: den.path / "wait.available",
    "claimed payload": lambda den: den.path / f"{den.mine}.claimed",
    "shell payload": lambda den: den.path / "shell.claimed",
    "shell offer": lambda den: den.path / "v1.2.available",
    "done payload": lambda den: next((den.path / "done").iterdir()),
    "failed payload": lambda den: next((den.path / "failed").iterdir()),
    "free lock": lambda den: den.path / names.waiting_name("gate", names.Stamp(1), names.FREE),
    "held lock": lambda den: den.path / f"{den.door}.held",
    "probe": lambda den: den.path / ".dibs/probe",
    "journal": lambda den: den.file("journal"),
    "another journal": lambda den: den.path / ".dibs/journal/other.jsonl",
    "witness": lambda den: den.file("witness"),
    "known": lambda den: den.path / ".dibs/known/wait.0",
    "known of a vanished id": lambda den: den.path / ".dibs/known/gone.0",
    "a second known": lambda den: den.path / ".dibs/known/gone.1",
    "gone": lambda den: den.path / ".dibs/gone/gone.0",
    "draft": lambda den: den.path / ".dibs/new/gone.task.0123456789",
    "temporary": lambda den: den.path / ".dibs/new/0123456789",
    "count": lambda den: den.path / ".dibs/plain/shell",
    "past": lambda den: den.path / ".dibs/past/over.f1",
    "aside": lambda den: den.path / ".dibs/aside/x.f0.dibs-0123456789",
    "settings": lambda den: den.path / ".dibs/board.toml",
    "stranger": lambda den: den.path / "notes.txt",
}


GROUPS = [
    ("record", "shell lock", "journal", "known"),
    ("record of a lock", "lone lock", "waiting payload", "witness"),
    ("claimed payload", "done payload", "another journal", "gone"),
    ("shell payload", "failed payload", "probe", "a second known"),
    ("shell offer", "free lock", "draft", "count", "past"),
    ("held lock", "temporary", "aside", "known of a vanished id", "stranger"),
    ("settings",),
]
"""Places that have little to do with each other: one board serves for several."""
groups = pytest.mark.parametrize("group", GROUPS, ids=", ".join)


def besieged(scratch: Path, group: tuple[str, ...], kind: str, *, commands: bool) -> list[str]:
    den = Den(scratch)
    for place in group:
        plant(PLACES[place](den), kind)
    uid = NOBODY if kind == "sealed" and os.geteuid() == 0 else None
    return den.besieged(commands=commands, uid=uid)


def test_every_place_has_its_turn() -> None:
    assert sorted(place for group in GROUPS for place in group) == sorted(PLACES)


@pytest.mark.parametrize("kind", KINDS)
@groups
def test_each_verb_survives_foul_files(scratch: Path, group: tuple[str, ...], kind: str) -> None:
    assert besieged(scratch, group, kind, commands=False) == []


@pytest.mark.parametrize("kind", ["binary", "passwd", "fifo", "full", "sealed", "bomb", "future"])
@groups
def test_each_command_survives_foul_files(scratch: Path, group: tuple[str, ...], kind: str) -> None:
    assert besieged(scratch, group, kind, commands=True) == []


def test_a_board_without_anything_foul_serves_every_verb(scratch: Path) -> None:
    assert Den(scratch).besieged() == []
