"""The cold start of a verb: what it imports, and what it costs beside a bare Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.cli.grammar import VERBS
from tests.core.tools import settle

CORE = Path(dibs.__file__).parents[1]
TUI = CORE.with_name("tui")
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


@pytest.mark.parametrize("verb", sorted({*VERBS, "run"} - {"paths"}))
def test_no_verb_imports_the_dashboard(env: dict[str, str], scratch: Path, verb: str) -> None:
    """`paths` alone asks the dashboard for its own, and imports no more of it than that."""
    settle(scratch)
    dibs.open(scratch).add("a")
    line = [sys.executable, "-X", "importtime", "-c", SCRIPT, "-d", str(scratch), verb]
    done = subprocess.run([*line, *GIVEN.get(verb, [])], env=env, capture_output=True, timeout=30)
    told = done.stderr.decode().splitlines()
    loaded = {row.rpartition("|")[2].strip() for row in told if row.startswith("import time:")}
    assert {"dibs.cli", "dibs_tui.main"} <= loaded
    assert loaded & DASHBOARD == {"dibs_tui"}
    assert not {name for name in loaded if name.startswith("dibs_tui.")} - {"dibs_tui.main"}


def cost(command: list[str], env: dict[str, str]) -> float:
    """The processor time of one process."""
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return used.ru_utime + used.ru_stime


def test_claim_costs_at_most_four_times_a_python_that_does_nothing(
    env: dict[str, str], scratch: Path
) -> None:
    settle(scratch)
    for number in range(1000):
        (scratch / f"task-{number}.available").touch()
    claim = [sys.executable, "-c", SCRIPT, "-d", str(scratch), "claim"]
    bare = [sys.executable, "-c", "pass"]
    cost(claim, env)  # compiles
    rounds = [(cost(bare, env), cost(claim, env)) for _ in range(20)]
    least = [min(side) for side in zip(*rounds, strict=True)]
    assert least[1] <= 4 * least[0], rounds
