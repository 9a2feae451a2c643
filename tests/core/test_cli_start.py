"""The cold start of a verb: what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.cli.grammar import VERBS
from tests.core.tools import settle
from tests.patience import PATIENCE

CORE = Path(dibs.__file__).parents[1]
TUI = CORE.with_name("tui")
SLOW = {
    *("asyncio", "concurrent.futures", "ctypes", "dataclasses", "datetime", "hashlib", "inspect"),
    *("logging", "multiprocessing", "pathlib", "random", "selectors", "socket", "sqlite3"),
    *("subprocess", "tempfile", "threading", "tomllib", "urllib.parse", "uuid"),
}
DASHBOARD = {"dibs_tui", "humanize", "rich", "textual", "watchfiles"}
SCRIPT = "import sys; from dibs_tui.main import main; sys.exit(main())"
CLAIM = "a.f1.me-0123456789"
GIVEN = {
    "add": ["b"], "acquire": ["door"], "status": ["door"], "show": ["a"], "forget": ["a"],
    "prioritise": ["a.available", "9"], "park": ["a.available"], "completion": ["bash"],
    "force-release": [CLAIM, "--reason", "why"], "purge": ["--done", "--older-than", "1h"],
    "requeue": [f"failed/{CLAIM}"], "run": ["a", "--", "true"],
    "beat": [CLAIM], "verify": [CLAIM], "done": [CLAIM], "fail": [CLAIM], "release": [CLAIM],
    "renew": [CLAIM],
}  # fmt: skip


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As an installed package has it: compiled."""
    cache = str(tmp_path_factory.mktemp("cache"))
    env = os.environ | {"PYTHONPYCACHEPREFIX": cache, "PYTHONPATH": f"{CORE}:{TUI}"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


def imported(env: dict[str, str], board: Path, verb: str) -> set[str]:
    """Every module that a verb imports."""
    line = [sys.executable, "-X", "importtime", "-c", SCRIPT, "-d", str(board), verb]
    done = subprocess.run(
        [*line, *GIVEN.get(verb, [])], env=env, capture_output=True, timeout=PATIENCE
    )
    told = done.stderr.decode().splitlines()
    return {row.rpartition("|")[2].strip() for row in told if row.startswith("import time:")}


@pytest.mark.parametrize("verb", sorted({*VERBS, "run"} - {"paths"}))
def test_no_verb_imports_the_dashboard(env: dict[str, str], scratch: Path, verb: str) -> None:
    """`paths` alone asks the dashboard for its own, and imports no more of it than that."""
    settle(scratch)
    dibs.open(scratch).add("a")
    loaded = imported(env, scratch, verb)
    assert {"dibs.cli", "dibs_tui.main"} <= loaded
    assert loaded & DASHBOARD == {"dibs_tui"}
    assert not {name for name in loaded if name.startswith("dibs_tui.")} - {"dibs_tui.main"}


def test_a_claim_imports_nothing_of_the_standard_library_that_takes_long(
    env: dict[str, str], scratch: Path
) -> None:
    """What it costs beside a bare Python is measured by tests.bench."""
    dibs.open(scratch, create=True).add("a")
    loaded = imported(env, scratch, "claim")
    assert "dibs.claims" in loaded
    assert loaded & SLOW == set()
