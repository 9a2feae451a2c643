"""The fast lane, `pytest -m fast`: quick tests of each package, by the marks in the modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_tree import ROOT, imported, modules

TESTS = ROOT / "tests"
SUITES = {"tests.contract", "tests.explorer", "tests.suite"}
"""What the lane has of the suites that belong to no single package."""

pytestmark = pytest.mark.fast("tests.suite")


def packages() -> set[str]:
    """Every package of the core and of the dashboard."""
    return {name for name, path in modules().items() if path.name == "__init__.py"}


def rooms(path: Path) -> Iterator[str]:
    """The packages that the tests of a module stand for: `pytest.mark.fast("the.package")`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fast":
            (room,) = node.args
            assert isinstance(room, ast.Constant), path
            yield str(room.value)


def reached(path: Path) -> set[str]:
    """Every module that a test imports, itself or through its helpers in `tests`."""
    found, waiting = set[str](), [path]
    while waiting:
        for name in set(imported(waiting.pop())) - found:
            found.add(name)
            helper = ROOT / f"{name.replace('.', '/')}.py"
            if name.startswith("tests.") and helper.exists():
                waiting.append(helper)
    return found


@cache
def in_the_lane() -> dict[str, list[Path]]:
    """The test modules of each package."""
    found: dict[str, list[Path]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for room in rooms(path):
            found.setdefault(room, []).append(path)
    return found


def test_the_fast_lane_has_tests_of_every_package() -> None:
    assert in_the_lane().keys() == packages() | SUITES


@pytest.mark.parametrize("package", sorted(packages()))
def test_a_fast_test_of_a_package_imports_it(package: str) -> None:
    own = {name for name in modules() if name.rpartition(".")[0] == package} | {package}
    tests = in_the_lane()[package]
    assert any(reached(path) & own for path in tests), [path.name for path in tests]
