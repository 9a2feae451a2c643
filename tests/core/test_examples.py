"""Every public name has an example, and every example runs on a real board."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import os
import queue
import re
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import dibs
import dibs.aio
from dibs.model import errors
from tests.core.tools import settle
from tests.patience import PATIENCE

pytestmark = pytest.mark.fast("dibs")
PAGE = (Path(dibs.__file__).parents[2] / "docs/python.md").read_text()
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
FULLY = {
    *("Board", "Claim", "KeptClaim", "Log", "OutputKeeper", "Presence", "Retry", "Watch"),
    *("AsyncBoard", "AsyncClaim", "AsyncLost", "WorkLoop"),
}
"""The classes of which every method and property has an example too."""
PARSER = doctest.DocTestParser()


def public() -> dict[str, Any]:
    """Every public name, and what each of them has."""
    found: dict[str, Any] = {}
    rooms = {f"dibs.{name}": getattr(dibs, name) for name in dibs.__all__}
    rooms |= {f"dibs.aio.{name}": getattr(dibs.aio, name) for name in dibs.aio.__all__}
    for name, value in rooms.items():
        found[name] = value
        if inspect.isclass(value):
            for part, member in vars(value).items():
                if not part.startswith("_") and (
                    inspect.isfunction(member) or isinstance(member, property)
                ):
                    found[f"{name}.{part}"] = member
    return found


PUBLIC = public()


def examples(name: str) -> list[doctest.Example]:
    return PARSER.get_examples(inspect.getdoc(PUBLIC[name]) or "", name)


def needed() -> list[str]:
    """The names that must have an example."""
    return [
        name
        for name in PUBLIC
        if name.removeprefix("dibs.").removeprefix("aio.").count(".") == 0
        or name.split(".")[-2] in FULLY
    ]


def uses_claim(name: str) -> bool:
    """Whether an example uses a claim that it does not make."""
    source = "".join(example.source for example in examples(name))
    named = [
        node
        for node in ast.walk(compile(source, name, "exec", ast.PyCF_ONLY_AST | AWAIT))
        if isinstance(node, ast.Name | ast.arg)
        and (node.id if isinstance(node, ast.Name) else node.arg) == "claim"
    ]
    return bool(named) and all(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) for node in named
    )


AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@pytest.fixture
def names(board_dir: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What every example can use: a board with two tasks, in the current directory."""
    tasks = board_dir / "tasks"
    settle(tasks, retry=dibs.Settings().retry)
    monkeypatch.chdir(board_dir)
    board = dibs.open(tasks)
    board.add("build", b"what to do")
    board.add("deploy")
    return {"dibs": dibs, "board": board, "os": os, "queue": queue, "threading": threading}


@pytest.mark.parametrize("name", needed())
def test_a_public_name_has_an_example(name: str) -> None:
    assert examples(name), f"{name} has no example"


@pytest.mark.parametrize("name", [name for name in PUBLIC if examples(name)])
def test_an_example_runs(name: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        if name.startswith("dibs.aio."):
            names["board"] = runner.run(dibs.aio.open("tasks"))
        if uses_claim(name):
            names["claim"] = claim_for(name, names["board"], stack, runner)
        test = doctest.DocTest(examples(name), names, name, None, None, None)
        monkeypatch.setattr(doctest, "exec", execute(runner), raising=False)
        said: list[str] = []
        doctest.DocTestRunner(optionflags=FLAGS).run(test, compileflags=AWAIT, out=said.append)
        runner.run(drained(names["board"]))
    assert not said, "".join(said)


def claim_for(name: str, board: Any, stack: ExitStack, runner: asyncio.Runner) -> Any:
    """A claim on a task, of the kind that the example is about."""
    if isinstance(board, dibs.aio.AsyncBoard):
        block = board.working("build", owner="web-3")
        claim = runner.run(block.__aenter__())
        stack.callback(lambda: runner.run(left(block)))
        return claim
    if name.startswith("dibs.KeptClaim"):
        stack.enter_context(suppress(dibs.Lost))
        return stack.enter_context(board.working("build", owner="web-3"))
    return board.claim("build", owner="web-3")


async def left(block: dibs.aio.AsyncWorking) -> None:
    """End the claim, so that no thread keeps it after the test."""
    with suppress(dibs.Lost):
        await block.__aexit__(None, None, None)


def execute(runner: asyncio.Runner) -> Any:
    """Runs an example, also one that awaits."""

    def run(code: CodeType, names: dict[str, Any]) -> None:
        found = eval(code, names)
        if inspect.iscoroutine(found):
            runner.run(limited(found))

    return run


async def limited(work: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        await work


async def drained(board: Any) -> None:
    """Let what an example has left to the board's thread end."""
    if isinstance(board, dibs.aio.AsyncBoard):
        await board.call(lambda _: None)


def test_the_examples_of_the_python_page_run_unchanged(
    board_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(board_dir)
    settle(board_dir / "tasks")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    names: dict[str, Any] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    states = {
        ident: task.state
        for task in dibs.open("tasks").snapshot().tasks.values()
        for ident in [task.id]
    }
    assert states.pop("report-2") == "asked"
    assert {state for name, state in states.items() if name.startswith("report")} == {"done"}
    said = capsys.readouterr().out
    assert "tasks done" in said
    assert "square-3 done b'9'\nsquare-4 done b'16'\n" in said


def test_the_python_page_has_the_tree_of_errors() -> None:
    _, _, tree = (errors.__doc__ or "").partition("\n\n")
    assert tree.rstrip() in PAGE
