"""The tree that a new reader walks through: modules that come apart, and names to search for."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 3
"""Modules that may import each other; imports for types and in functions count."""


def modules() -> dict[str, Path]:
    """Every module of the two packages."""
    found = {}
    for root in (ROOT / "core", ROOT / "tui"):
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """What a module imports, wherever it does so; of `from a import b` both a and a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
                yield node.module or ""


def graph() -> dict[str, set[str]]:
    """Which module imports which; a package counts only where it is imported itself."""
    known = modules()
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        wanted = set(imported(path)) & set(known)
        inner = {one.rpartition(".")[0] for one in wanted}
        found[name] = {one for one in wanted if one not in inner and one != name}
    return found


def reachable(edges: Mapping[str, set[str]], start: str) -> set[str]:
    """All that a module leads to."""
    found, edge = set[str](), [start]
    while edge:
        for name in edges[edge.pop()] - found:
            found.add(name)
            edge.append(name)
    return found


def test_no_more_than_a_few_modules_import_each_other() -> None:
    edges = graph()
    leads = {name: reachable(edges, name) for name in edges}
    knots = {
        frozenset(other for other in leads[name] if name in leads[other])
        for name in edges
        if name in leads[name]
    }
    assert not [sorted(knot) for knot in knots if len(knot) > MOST]


def test_every_class_has_its_own_name() -> None:
    """A leading underscore makes no other name of it."""
    places = defaultdict(list)
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name.strip("_")].append(module)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_no_method_is_found_by_a_composed_name() -> None:
    """Whoever searches for the uses of a method finds them all."""
    composed = [
        f"{module}:{node.lineno}"
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "getattr"
        and isinstance(node.args[1], ast.BinOp | ast.JoinedStr)
    ]
    assert not composed
