"""The number of functions and modules between a command and its effect on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from tests.patience import PATIENCE

pytestmark = pytest.mark.fast("dibs.files")

CORE = Path(dibs.__file__).parents[1]
FUNCTIONS, MODULES = 83, 15
"""The limits for a cold `dibs claim`; lower them when it needs less, never raise them.

The fifteenth module is `moves.py`, which was a part of `board_files.py`.
"""
WALK = """\
import inspect, json, os, sys
import dibs.cli.grammar, dibs.cli.say, dibs.cli.work, dibs.files.engine

core, passed, rename = sys.argv[1], {}, os.rename

def profiled(frame, event, argument):
    code = frame.f_code
    function = code.co_flags & inspect.CO_NEWLOCALS and not code.co_name.startswith("<")
    if event == "call" and function and code.co_filename.startswith(core):
        passed.setdefault(code.co_filename.removeprefix(core), {})[code.co_qualname] = None

def renamed(src, *rest, **options):
    if src.endswith(".available"):
        sys.setprofile(None)
    return rename(src, *rest, **options)

os.rename = renamed
sys.setprofile(profiled)
assert dibs.cli.main(["-d", sys.argv[2], "claim"]) == 0
print(json.dumps({module: list(functions) for module, functions in passed.items()}))
"""
"""It loads the modules first: code that runs during an import is not counted."""


def test_the_path_of_a_claim_from_the_command_to_the_rename_is_short(scratch: Path) -> None:
    board = dibs.open(scratch, create=True)
    for ident in ("a", "b", "c"):
        board.add(ident)
    done = subprocess.run(
        [sys.executable, "-c", WALK, f"{CORE}/", str(scratch)],
        env=os.environ | {"PYTHONPATH": str(CORE), "USER": "me"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    name, walk = done.stdout.splitlines()
    assert name.startswith("a.f1.")
    passed: dict[str, list[str]] = json.loads(walk)
    way = "\n".join(f"{module}: {', '.join(functions)}" for module, functions in passed.items())
    assert {"dibs/cli/work.py", "dibs/files/claims.py", "dibs/files/moves.py"} <= passed.keys(), way
    assert sum(map(len, passed.values())) <= FUNCTIONS, way
    assert len(passed) <= MODULES, way
