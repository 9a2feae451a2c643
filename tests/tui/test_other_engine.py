"""The dashboard and the command line on a board whose tasks are not files on this host."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Capability, Delta, Location
from dibs.cli import main
from dibs.files.engine import FilesEngine
from dibs_tui.app import DibsApp
from dibs_tui.settings.memory import Remembered
from dibs_tui.source.board_source import BoardSource
from dibs_tui.widgets.problems import Problems
from tests.patience import PATIENCE
from tests.tui.dialogs import without_waiting
from tests.tui.inspected import opened
from tests.tui.live import text_of, until

WHERE = "elsewhere://host/queue"


class Wrapped:
    """A board or watch of another engine, which only keeps its place to itself."""

    location = Location(WHERE, WHERE)
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        assert name not in ("check", "repair", "probe"), "asked for without its capability"
        return getattr(self._inner, name)

    def open(self, *, read_only: bool = False) -> Any:
        return Wrapped(self._inner.open(read_only=read_only))


class ElsewhereEngine:
    """An engine for one board, which it keeps in a directory that no caller learns of."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept
        self.files = FilesEngine()

    def locate(self, where: str | os.PathLike[str]) -> Location:
        assert where == WHERE
        return Wrapped.location

    def open(self, where: str | os.PathLike[str], *, create: bool, read_only: bool) -> Any:
        assert where == WHERE
        return Wrapped(self.files.open(self.kept, create=create, read_only=read_only))

    def watch(
        self, where: str, report: Callable[[Delta], object], hints: object, **more: Any
    ) -> Any:
        assert where == WHERE
        return Wrapped(self.files.watch(str(self.kept), report, None, **more))


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    without_waiting(monkeypatch, tmp_path)
    kept = tmp_path / "kept"
    made = dibs.open(kept, create=True)
    files = dibs.board.engine_of
    other = ElsewhereEngine(kept)
    monkeypatch.setattr(
        dibs.board, "engine_of", lambda where: other if where == WHERE else files(where)
    )
    monkeypatch.chdir(tmp_path)
    return made


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    """The answers of a verb on that board, as JSON."""
    assert main(["-d", WHERE, "--json", *argv]) == 0, capsys.readouterr()
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_verbs_work_and_name_no_file(
    board: dibs.Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "add", "a")
    (claim,) = said(capsys, "claim", "--owner", "me")
    said(capsys, "beat", claim["claim"])
    (row,) = said(capsys, "ls")
    assert (row["id"], row["state"]) == ("a", "claimed")
    (place,) = (part for part in said(capsys, "paths") if part["key"] == "board")
    assert place["path"] == WHERE
    said(capsys, "done", claim["claim"])
    assert board.find("a")[0].state == "done"
    for verb in (["check"], ["check", "--probe"]):
        assert main(["-d", WHERE, *verb]) == 2
        assert "does not support" in capsys.readouterr().err


def test_the_dashboard_shows_inspects_and_acts(board: dibs.Board, tmp_path: Path) -> None:
    board.add("task-7", b"what to do")
    board.park(board.add("task-8").name, "later")

    async def steps() -> None:
        source = BoardSource(WHERE, poll=0.1)
        app = DibsApp(source, remembered=Remembered())
        source.start()
        try:
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                await until(pilot, lambda: app.model.complete)
                await walk(app, pilot)
        finally:
            source.stop(PATIENCE)

    async def walk(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "task-7" in text_of(app))
        assert WHERE in text_of(app)
        assert str(tmp_path) not in text_of(app)
        page = await opened(app, pilot, "task-7", "payload", "what to do")
        assert str(tmp_path) not in page.text
        assert "output" in text_of(app)
        assert "files" not in text_of(app)
        await pilot.press("6")
        assert "what to do" in page.text
        await pilot.press("shift+tab")
        await until(pilot, lambda: "no output was kept" in page.text)
        await pilot.press("escape", "2")
        screen = app.board_screen
        assert screen is not None
        screen.commands.run("copy-path")
        await until(pilot, lambda: "the tasks of this board are not files" in text_of(app))
        await pilot.press("8")
        problems = screen.query_one(Problems)
        await until(pilot, lambda: problems.check.done)
        assert problems.check.trouble == ""
        await pilot.press("5", "R")
        await until(pilot, lambda: "Requeue   y" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: board.find("task-8")[0].state == "available")
        await pilot.press("escape", "B")
        await until(pilot, lambda: "no worker gets a new task" in text_of(app))
        assert "mv" not in text_of(app).split()

    asyncio.run(steps())
