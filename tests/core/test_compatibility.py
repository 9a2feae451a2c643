"""The dibs of the previous tag and that of today work on one board, in turns."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
Run = Callable[..., str]


def git(*words: str) -> bytes:
    line = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words]
    return subprocess.run(line, capture_output=True, timeout=PATIENCE, check=True).stdout


def previous() -> str:
    """The newest tag of a version; today's code may be that version itself."""
    try:
        tags = git("tag", "--list", "v[0-9]*", "--sort=-version:refname").decode().split()
    except (FileNotFoundError, subprocess.CalledProcessError):
        tags = []
    return tags[0] if tags else ""


def client(core: Path, board: Path) -> Run:
    """A command line on the board."""

    def run(*argv: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dibs", "-d", str(board), *argv],
            env=os.environ | {"PYTHONPATH": str(core)},
            cwd=board,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == code, (core, argv, done)
        return done.stdout.strip()

    return run


@pytest.fixture(scope="module", params=["the previous tag", "a copy of today's"])
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core of another dibs. That of today shows, without any tag, that the tests can pass."""
    path = tmp_path_factory.mktemp("other")
    if request.param != "the previous tag":
        shutil.copytree(ROOT / "core/dibs", path / "core/dibs")
        return path / "core"
    tag = previous()
    if not tag:
        pytest.skip("NO EARLIER CLIENT WAS TRIED: there is no tag v*")
    packed = git("archive", tag, "core")
    subprocess.run(["tar", "-x", "-C", path], input=packed, check=True, timeout=PATIENCE)
    return path / "core"


@pytest.fixture(params=["the other began", "today's began"])
def pair(request: pytest.FixtureRequest, other: Path, board_dir: Path) -> tuple[Run, Run]:
    """Who begins, and who goes on."""
    first, second = client(other, board_dir), client(ROOT / "core", board_dir)
    return (first, second) if request.param == "the other began" else (second, first)


def test_a_task_goes_from_one_to_the_other(pair: tuple[Run, Run]) -> None:
    first, second = pair
    first("init")
    first("add", "a", "b", "c", "--priority", "7")
    claim = second("claim", "a", "--owner", "me", "--meta", "branch=main")
    first("beat", claim)
    second("verify", claim)
    first("done", claim)
    second("verify", claim, code=5)
    first("fail", second("claim", "b"), "--reason", "no space", "--retry-in", "0")
    assert "a1" in first("ls", "b")
    second("release", first("claim", "b"))
    lock = first("acquire", "deploy", "--owner", "me")
    assert json.loads(second("--json", "status", "deploy"))["claim"] == lock
    second("acquire", "deploy", code=4)
    second("release", lock)
    for run in pair:
        assert run("check") == ""
        assert {json.loads(line)["id"] for line in run("--json", "ls").splitlines()} >= {"b", "c"}


def test_an_operator_of_one_acts_on_claims_of_the_other(pair: tuple[Run, Run]) -> None:
    first, second = pair
    first("init")
    first("add", "a", "b")
    claim = first("claim", "a", "--owner", "me")
    second("force-release", claim, "--reason", "stuck")
    first("done", claim, code=5)
    assert second("claim", "a").startswith("a.f2.")
    parked = first("park", "b.available", "--reason", "later")
    second("requeue", parked)
    verbs = [json.loads(line)["verb"] for line in first("--json", "log").splitlines()]
    assert {"add", "claim", "force-release", "park", "requeue"} <= set(verbs)
    for run in pair:
        assert run("check") == ""


def test_the_json_of_today_has_every_field_of_the_other(other: Path, board_dir: Path) -> None:
    earlier, today = client(other, board_dir), client(ROOT / "core", board_dir)
    earlier("init")
    earlier("add", "a")
    today("claim", "a")
    for line in (["ls"], ["show", "a"], ["stats"], ["log", "a"]):
        was, now = (
            [json.loads(row) for row in run("--json", *line).splitlines()]
            for run in (earlier, today)
        )
        for one, two in zip(was, now, strict=True):
            assert one["v"] == two["v"], "another number is another promise: change the test"
            assert one.keys() <= two.keys()
