"""The default run leaves out the drills, says so, and still has tests of every package."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from tests.drills import EVERY_ENGINE, KEPT, PATHS, covers, is_drill
from tests.test_tree import ROOT

FOLDER = "tests/stress"
DRILL = "tests/stress/test_run_host.py"


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    """A run of its own, without the options of this one, of which one may be `--drills`."""
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *argv]
    plain = {name: text for name, text in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=plain)


def collected(*argv: str) -> tuple[int, str]:
    """The number of tests that a run has, and what it says of drills."""
    done = run("--collect-only", *argv)
    lines = done.stdout.splitlines()
    notice = [text for text in lines if "not run: `make drills`" in text]
    return sum("::" in text for text in lines), "".join(notice)


@pytest.mark.parametrize("path", [*PATHS, *KEPT, *EVERY_ENGINE])
def test_each_path_of_the_tables_is_there(path: str) -> None:
    module, _, test = path.partition("::")
    if path.endswith("/"):
        assert (ROOT / path).is_dir()
        return
    body = ast.parse((ROOT / module).read_text()).body
    assert not test or test in [found.name for found in body if isinstance(found, ast.FunctionDef)]


@pytest.mark.parametrize("path", KEPT)
def test_what_is_kept_would_be_left_out(path: str) -> None:
    assert any(covers(drill, path) for drill in PATHS), "it runs by default anyway"


def test_the_fast_lane_which_has_tests_of_every_package_always_runs() -> None:
    assert collected("-m", "fast and drill", "tests/remote", "tests/stress") == (0, "")


def test_drills_are_left_out_and_counted() -> None:
    everything, notice = collected("--drills", FOLDER)
    assert notice == ""
    default, notice = collected(FOLDER)
    assert 0 < default < everything
    assert notice == f"{everything - default:,} drills not run: `make drills`"
    assert collected("-m", "drill", FOLDER) == (everything - default, "")


def test_a_module_or_a_test_that_is_named_runs() -> None:
    assert collected(f"{DRILL}::test_the_command_inherits_the_descriptors_of_the_run") == (1, "")


def test_the_contract_runs_on_every_engine_only_for_the_verbs() -> None:
    verbs, rest = EVERY_ENGINE[0], "tests/contract/test_leases.py"
    assert [is_drill(f"{verbs}::test_x[{engine}]", engine) for engine in ("files", "remote")] == [
        False,
        False,
    ]
    assert [is_drill(f"{rest}::test_x[{engine}]", engine) for engine in ("files", "remote")] == [
        False,
        True,
    ]


def test_workers_of_xdist_report_what_they_left_out() -> None:
    done = run("-n", "1", FOLDER, "-k", "test_found")
    assert done.returncode == 0, done.stdout
    assert "drills not run: `make drills`" in done.stdout
