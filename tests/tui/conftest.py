"""A fresh board for each test, and a home directory without remembered settings."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the board, which does not exist yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "board"


@pytest.fixture
def board(path: Path) -> dibs.Board:
    """An empty board."""
    return dibs.open(path, create=True)


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The colours of the tests are 24-bit, on whichever terminal they run, and on none."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
