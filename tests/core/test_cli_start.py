"""The modules that a verb imports at a cold start."""

from __future__ import annotations

import os
import signal
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
SCRIPT = "import sys; from dibs_tui.cli import main; sys.exit(main())"
CLAIM = "a.f1.me-0123456789"
GIVEN = {
    "add": ["b"], "acquire": ["door"], "status": ["door"], "show": ["a"], "forget": ["a"],
    "prioritize": ["a.available", "9"], "park": ["a.available"], "completion": ["bash"],
    "force-release": [CLAIM, "--reason", "why"], "purge": ["--done", "--older-than", "1h"],
    "requeue": [f"failed/{CLAIM}"], "run": ["a", "--", "true"],
    "serve": ["--listen", "nowhere"], "token": ["ls"],
    "watch": ["age>nonsense"], "wait": ["--timeout", "0"],
    "beat": [CLAIM], "verify": [CLAIM], "done": [CLAIM], "fail": [CLAIM], "release": [CLAIM],
}  # fmt: skip


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with compiled modules, as an installed package has."""
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
    rows = done.stderr.decode().splitlines()
    return {row.rpartition("|")[2].strip() for row in rows if row.startswith("import time:")}


@pytest.mark.parametrize("verb", sorted({*VERBS, "run"} - {"paths"}))
def test_no_verb_imports_the_dashboard(env: dict[str, str], scratch: Path, verb: str) -> None:
    """Only `paths` asks the dashboard, for its paths, and imports nothing else of it."""
    settle(scratch)
    dibs.open(scratch).add("a")
    loaded = imported(env, scratch, verb)
    assert {"dibs.cli", "dibs_tui.cli"} <= loaded
    its_own = {"watchfiles"} if verb == "mcp" else set()  # a requirement of its SDK, too
    assert loaded & DASHBOARD - its_own == {"dibs_tui"}
    assert not {name for name in loaded if name.startswith("dibs_tui.")} - {"dibs_tui.cli"}


def test_a_claim_imports_no_slow_module_of_the_standard_library(
    env: dict[str, str], scratch: Path
) -> None:
    """tests.bench measures its cost compared to a bare Python."""
    dibs.open(scratch, create=True).add("a")
    loaded = imported(env, scratch, "claim")
    assert "dibs.files.claims" in loaded
    assert loaded & SLOW == set()


INTERRUPTED = (
    "import builtins, os, signal, sys\n"
    "load = builtins.__import__\n"
    "def interrupted(name, *rest, **more):\n"
    "    if name == {module!r}:\n"
    "        os.kill(os.getpid(), signal.SIGINT)\n"
    "    return load(name, *rest, **more)\n"
    "builtins.__import__ = interrupted\n"
)
MODULE = "import runpy; runpy.run_module('dibs', run_name='__main__')"


@pytest.mark.parametrize(
    ("program", "module", "code"),
    [
        (SCRIPT, "dibs.cli", -signal.SIGINT),
        (SCRIPT, "dibs.cli.grammar", -signal.SIGINT),
        (SCRIPT, "dibs.files.engine", 130),
        ("from dibs_tui.cli import main; import late; main()", "late", -signal.SIGINT),
        (MODULE, "dibs.cli", -signal.SIGINT),
        (MODULE, "dibs.cli.grammar", -signal.SIGINT),
        (MODULE, "dibs.files.engine", 130),
    ],
)
def test_ctrl_c_while_dibs_starts_prints_no_traceback(
    env: dict[str, str], scratch: Path, program: str, module: str, code: int
) -> None:
    settle(scratch)
    line = [sys.executable, "-c", INTERRUPTED.format(module=module) + program, "ls"]
    path = os.pathsep.join([str(CORE), str(TUI)])
    done = subprocess.run(
        line,
        env=env | {"PYTHONPATH": path, "DIBS_DIR": str(scratch)},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (code, b"")


PARSING = (
    "import argparse, os, signal\n"
    "parse = argparse.ArgumentParser.parse_known_args\n"
    "def interrupted(*words):\n"
    "    os.kill(os.getpid(), signal.SIGINT)\n"
    "    return parse(*words)\n"
    "argparse.ArgumentParser.parse_known_args = interrupted\n"
)
CLASS = (
    "import os, signal, dibs.board\n"
    "class Name:\n"
    "    def __set_name__(self, *_):\n"
    "        os.kill(os.getpid(), signal.SIGINT)\n"
    "        for _ in range(9): pass\n"
    "def engine_of(_):\n"
    "    type('Made', (), {'name': Name()})\n"
    "dibs.board.engine_of = engine_of\n"
)


@pytest.mark.parametrize("program", [SCRIPT, MODULE], ids=["dibs", "-m dibs"])
@pytest.mark.parametrize(
    ("patch", "code"),
    [(PARSING, -signal.SIGINT), (CLASS, 130)],
    ids=["while arguments are parsed", "while a class is made"],
)
def test_ctrl_c_that_python_turns_into_another_error_is_no_traceback(
    env: dict[str, str], scratch: Path, program: str, patch: str, code: int
) -> None:
    settle(scratch)
    done = subprocess.run(
        [sys.executable, "-c", patch + program, "ls"],
        env=env | {"PYTHONPATH": os.pathsep.join([str(CORE), str(TUI)]), "DIBS_DIR": str(scratch)},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (code, b"")


def test_ctrl_c_stays_ignored_where_the_caller_ignores_it(
    env: dict[str, str], scratch: Path
) -> None:
    settle(scratch)
    program = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    program += INTERRUPTED.format(module="dibs.cli.grammar") + SCRIPT
    path = os.pathsep.join([str(CORE), str(TUI)])
    done = subprocess.run(
        [sys.executable, "-c", program, "ls"],
        env=env | {"PYTHONPATH": path, "DIBS_DIR": str(scratch)},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0
