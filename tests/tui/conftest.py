"""A board of its own for a test, and a home that remembers nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the board lies, or will."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "board"


@pytest.fixture
def board(path: Path) -> dibs.Board:
    """An empty board."""
    return dibs.open(path, create=True)
