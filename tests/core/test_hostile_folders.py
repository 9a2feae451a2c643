"""Hostile settings, folders and names: refused with typed errors, never followed or shown raw."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.model.names import free_folder
from dibs.model.settings import load
from tests.core.hostile import AttackedBoard
from tests.core.tools import Place, in_child

NONCE = "0123456789"
SETTINGS = {
    "newer": b"format = 3",
    "no format": b'format = "1"',
    "true format": b"format = true",
    "broken": b"ttl = ",
    "binary": bytes(range(256)),
    "not utf-8": b'durability = "\xff"',
    "unknown": b"colour = 1",
    "escape in a key": b'"\\u001b[2J" = 1',
    "long number": b"ttl = " + b"9" * 5000,
    "nested": b"x = " + b"[" * 20_000,
    "date": b"ttl = 2024-99-99",
    "table": b"[ttl]\na = 1",
    "twice": b"ttl = 5\nttl = 6",
    "large": b"#" * (1 << 20) + b"\nttl = 5",
    **{
        f"ttl {v}": b"ttl = " + v.encode()
        for v in ("0", "-1", "nan", "inf", "86401", '"5 x"', "true")
    },
    **{f"plain {v}": b"plain_ttl = " + v.encode() for v in ("0", "nan", "[]", "false")},
    **{f"max {v}": b"max_attempts = " + v.encode() for v in ("0", "-1", "1.5", '"5"', "true")},
    **{f"durability {v}": b"durability = " + v.encode() for v in ('""', '"OFF"', "1", "[]", "{}")},
    **{f"dead {v}": b"reap_dead = " + v.encode() for v in ("1", '"yes"', "[]")},
}


@pytest.mark.parametrize("content", SETTINGS.values(), ids=SETTINGS.keys())
def test_invalid_settings_open_no_board(scratch: Path, content: bytes) -> None:
    place = Place(scratch)
    (place.path / ".dibs/board.toml").write_bytes(content)

    def refusals() -> list[str]:
        messages = []
        for create in (False, True):
            with pytest.raises(dibs.NotABoard) as caught:
                dibs.open(place.path, create=create)
            messages.append(str(caught.value))
        return messages

    for message in in_child(refusals):
        assert message.isprintable()


@given(st.binary(max_size=200))
def test_arbitrary_settings_are_parsed_or_refused(data: bytes) -> None:
    try:
        settings = load(data)
    except dibs.NotABoard:
        return
    assert 1 <= settings.ttl <= 86_400


FOLDERS = [
    *(".dibs", "done", "failed", ".dibs/records", ".dibs/known", ".dibs/gone", ".dibs/new"),
    *(".dibs/past", ".dibs/plain", ".dibs/aside", ".dibs/witness", ".dibs/journal", ".dibs/free"),
    free_folder("gate"),
]
INSTEAD: dict[str, Callable[[AttackedBoard, Path], object]] = {
    "link outside": lambda victim, path: path.symlink_to(victim.outside),
    "link inside": lambda victim, path: path.symlink_to(path.with_name("elsewhere")),
    "link to itself": lambda victim, path: path.symlink_to(path.name),
    "file": lambda victim, path: path.write_bytes(b"x"),
    "fifo": lambda victim, path: os.mkfifo(path),
    "nothing": lambda victim, path: None,
}


@pytest.mark.parametrize("instead", INSTEAD)
@pytest.mark.parametrize("folder", FOLDERS)
def test_something_else_in_place_of_a_folder_is_never_followed(
    scratch: Path, folder: str, instead: str
) -> None:
    victim = AttackedBoard(scratch)
    path = victim.path / folder
    path.rename(path.with_name("elsewhere"))
    INSTEAD[instead](victim, path)
    wrong = victim.problems(commands=instead == "fifo")
    assert [line for line in wrong if not line.startswith("lost") or folder[0] == "."] == []


@pytest.mark.parametrize("count", [5000])
def test_many_unknown_files_are_counted_and_left_alone(scratch: Path, count: int) -> None:
    place = Place(scratch)
    place.board.add("x", b"p")
    for number in range(count):
        word = ("txt", "lock", "held", "Available", "claimed.available")[number % 5]
        (place.path / f"stranger{number}.{word}").touch()

    def look() -> tuple[int, int, int]:
        board = place.another()[0]
        claim = board.claim()
        assert claim is not None
        claim.done()
        findings = [f for f in board.check() if f.kind == "stranger"]
        board.repair()
        return board.snapshot().strangers, len(findings), len(os.listdir(place.path))

    assert in_child(look) == (count * 4 // 5, count * 4 // 5, count + 3)


@pytest.mark.parametrize(
    "name",
    [
        "\n.available",
        "a\x1b[2Jb.available",
        "\udcff\udcfe.claimed",
        "x" * 120 + ".claimed-by-" + "y" * 122,
        "=" * 40 + ".available",
        "x" * 255,
        "." + "available." * 20,
        " .available",
        "-rf.available",
        "\u202e.available",
        f"x.f999999999999999999a999999999p9.{'y' * 40}-{NONCE}.claimed",
    ],
)
@pytest.mark.parametrize("commands", [False, True])
def test_an_invalid_name_harms_no_verb_and_no_terminal(
    scratch: Path, name: str, commands: bool
) -> None:
    victim = AttackedBoard(scratch)
    (victim.path / name).write_bytes(b"payload of an invalid name")
    assert victim.problems(commands=commands) == []


def test_an_error_counts_the_lines_of_settings_as_an_editor_does() -> None:
    with pytest.raises(dibs.BadSettings, match=r"board\.toml line 2: ttl must be"):
        load("# one\N{LINE SEPARATOR}line\nttl = 0\n".encode())
