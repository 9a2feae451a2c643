"""The verbs that wait, watch, count and complete."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.cli.grammar import VERBS
from tests.core.test_cli import Command
from tests.core.tools import settle


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shells_accept_the_completion_script(command: Command, shell: str) -> None:
    script = command.run("completion", shell).stdout.decode()
    for word in (*VERBS, "run", "--max-waiting"):
        assert word.removeprefix("--") in script
    if shutil.which(shell) is None:
        pytest.skip(f"THE COMPLETION OF {shell} WAS NOT TRIED: it is not installed")
    checked = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_paths_shows_each_location_and_its_reason(command: Command) -> None:
    rows = {
        row["key"]: row
        for row in map(json.loads, command.run("--json", "paths").stdout.splitlines())
    }
    assert rows["board"]["path"] == str(command.path)
    assert rows["board"]["from"] == "-d"
    assert Path(rows["shell"]["path"]).is_file()
    command.env["DIBS_DIR"] = str(command.path)
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "paths"], env=command.env, capture_output=True, check=True
    )
    assert b"$DIBS_DIR" in done.stdout
