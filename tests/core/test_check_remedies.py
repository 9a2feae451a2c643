"""Each line of `check` says what to do about its finding."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.test_cli import Command

NONCE = "0123456789"
CLAIM = f"t.f1.me-{NONCE}"
_advises = re.compile(
    r": (?:move|remove|replace|unmount|use|keep|rename|answer|nothing to do|check the)\b"
    r"|`(?:ch|dibs|mv)[^`]*`|\(--repair\)$"
).search
"""An imperative after a colon, or a command, or that `--repair` mends it."""


def folder(path: Path) -> None:
    path.mkdir(parents=True)


def note(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    return write


FOUND: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a name of no task": ("notes.txt", note(""), "stranger"),
    "an ended name of no task": ("done/notes.txt", note(""), "stranger"),
    "an ended name of no claim": ("failed/t.f1", note(""), "stranger"),
    "a free lock of another folder": (".dibs/free/000/gpu.f7", note(""), "stranger"),
    "a name of no free lock": (".dibs/free/000/notes.txt", note(""), "stranger"),
    "a doubtful owner": ("x.claimed-by-web.lock", note(""), "stranger"),
    "a FIFO as a task": ("t.available", os.mkfifo, "stuck"),
    "a folder as a task": ("t.available", folder, "stuck"),
    "the highest fence": (f"t.f{10**18 - 1}.available", note(""), "stuck"),
    "an invalid record": (f".dibs/records/{CLAIM}", note("{"), "record"),
    "a name of no record": (".dibs/records/x.lock", note(""), "stranger"),
    "a folder as a record": (f".dibs/records/u.f1.me-{NONCE}", folder, "stranger"),
    "a name of no entry": (".dibs/known/notes.txt", note(""), "stranger"),
    "a name of no worker": (".dibs/waiting/notes.txt", note(""), "stranger"),
    "a name of no note": (".dibs/notes/notes.txt", note(""), "stranger"),
    "a name of no question": (".dibs/questions/notes.txt", note(""), "stranger"),
    "a question that is missing": (f"t.f1q1.me-{NONCE}.asked", note(""), "question"),
    "a name of no pause": (".paused/notes.txt", note(""), "stranger"),
    "a file as the folder of pauses": (".paused", note(""), "stranger"),
    "a torn journal": (".dibs/journal/other-1.jsonl", note('{"at"'), "journal"),
    "a folder that is not empty": (f".dibs/past.{NONCE}/inner", folder, "stranger"),
}


@pytest.mark.parametrize("what", FOUND)
def test_a_finding_says_what_to_do(command: Command, what: str) -> None:
    command("init")
    name, make, kind = FOUND[what]
    if "record" in what:
        (command.path / f"{CLAIM}.claimed").touch()
    path = command.path / name
    path.parent.mkdir(exist_ok=True, parents=True)
    make(path)
    found = command.run("check").stdout.decode().splitlines()
    lines = [line for line in found if line.startswith(kind)]
    assert lines
    assert [line for line in lines if not _advises(line)] == []
