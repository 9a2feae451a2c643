"""The public API is complete, documented, and matches its documentation."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
import dibs.aio
from dibs.model import errors
from dibs.model.names import read

pytestmark = pytest.mark.fast("dibs")

CHECKOUT = Path(__file__).parents[2]
TASK = read("x.available")
assert TASK is not None
HELD = dibs.Held("held", TASK, "me", 1.5, "m")
PAUSED = dibs.Paused("paused", dibs.Pause("0123456789", "ada", "deploy", 1.0))
STANDARD = ("None", "Iterator", "Mapping", "Found", "AbstractContextManager")
DRAWN = re.compile(r"^([ │├└─]*)([A-Z][A-Za-z]+)\s+(.*?)(?:\s*\(exit (\d)\))?$")


def documented() -> Iterator[tuple[str, object]]:
    """Each public class and function, and each public method and property."""
    for name in dibs.__all__:
        found = getattr(dibs, name)
        yield name, found
        if not inspect.isclass(found):
            continue
        fields = getattr(found, "_fields", ())
        for member, value in vars(found).items():
            plain = inspect.isfunction(value) or isinstance(value, property)
            if plain and not member.startswith("_") and member not in fields:
                yield f"{name}.{member}", value


def drawn() -> dict[str, tuple[str | None, str, int | None]]:
    """The tree in the docstring of `errors.py`: each class with its parent, text and exit code."""
    tree: dict[str, tuple[str | None, str, int | None]] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        m = DRAWN.match(line)
        if not m or not hasattr(errors, m[2]):
            continue
        depth = len(m[1])
        path = [(d, name) for d, name in path if d < depth]
        tree[m[2]] = (path[-1][1] if path else None, m[3], int(m[4]) if m[4] else None)
        path.append((depth, m[2]))
    return tree


def classes() -> dict[str, type[dibs.DibsError]]:
    found = vars(errors).values()
    return {c.__name__: c for c in found if inspect.isclass(c) and issubclass(c, dibs.DibsError)}


def test_all_is_sorted_and_complete() -> None:
    names = dibs.__all__
    assert names == sorted(names)
    assert len(names) == len(set(names))
    public = {
        name
        for name, value in vars(dibs).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(names)


def test_every_error_is_public() -> None:
    assert set(classes()) <= set(dibs.__all__)


def test_results_of_public_methods_are_public() -> None:
    for name, value in documented():
        if not inspect.isfunction(value):
            continue
        returned = str(inspect.signature(value).return_annotation)
        for word in re.findall(r"\b[A-Z][A-Za-z]+\b", returned):
            if word not in STANDARD:
                assert word in dibs.__all__, f"{name} gives {returned}"


@pytest.mark.parametrize(
    ("name", "value"), list(documented()), ids=[name for name, _ in documented()]
)
def test_everything_public_is_documented_or_explained_by_its_type(name: str, value: object) -> None:
    doc = inspect.getdoc(value.fget if isinstance(value, property) else value)
    if isinstance(value, property):
        assert value.fget is not None
        assert doc or value.fget.__annotations__.get("return")
        return
    assert doc, f"{name} has no docstring"
    assert not doc.startswith(f"{name}("), f"{name} has only the docstring of NamedTuple"
    assert re.search(r"[.:!)]$", doc.splitlines()[0]), f"{name}: {doc}"


def test_the_documented_tree_of_errors_is_the_real_one() -> None:
    tree = drawn()
    assert set(tree) == set(classes())
    for name, (parent, _, _) in tree.items():
        base = classes()[name].__base__
        assert base is not None
        assert (name, base.__name__) == (name, parent or "Exception")


def test_the_documented_exit_codes_are_the_real_ones() -> None:
    tree = drawn()
    for name, (parent, _, code) in tree.items():
        while code is None and parent is not None:
            parent, _, code = tree[parent]
        if code is not None:
            assert (name, classes()[name].exit_code) == (name, code)


def test_the_fields_in_the_documented_tree_exist() -> None:
    early = dibs.NotDue("m", HELD.task, "", 1.5, "")
    made = {"Held": HELD, "NotDue": early, "Changed": dibs.Changed("m", "x")}
    made |= {"Lost": dibs.Lost("m", "x"), "Paused": PAUSED}
    for name, (_, words, _) in drawn().items():
        for field in re.findall(r"`([a-z]+)`", words):
            assert hasattr(made.get(name), field), f"{name} has no {field}"


@pytest.mark.parametrize(
    "error",
    [
        dibs.Changed("changed", "x.available", (TASK,)),
        dibs.Lost("lost", "x.available", (TASK,)),
        HELD,
        PAUSED,
        dibs.BadName("bad"),
        dibs.ReadOnly("no"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_be_pickled_out_of_a_worker_process(error: dibs.DibsError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def fences(path: Path, language: str) -> list[str]:
    text = path.read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{p.name}" for p in CHECKOUT.glob("docs/*.md"))]
)
def test_the_python_in_a_page_compiles_and_uses_existing_names(page: str) -> None:
    for source in fences(CHECKOUT / page, "python"):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "dibs":
                    assert hasattr(dibs, node.attr), f"{page}: dibs.{node.attr}"
                if node.value.id == "board":
                    boards = (dibs.Board, dibs.aio.AsyncBoard)
                    there = any(hasattr(board, node.attr) for board in boards)
                    assert there, f"{page}: board.{node.attr}"
                if node.value.id in ("claim", "lease"):
                    claims = (dibs.Claim, dibs.KeptClaim)
                    there = any(hasattr(claim, node.attr) for claim in claims)
                    assert there, f"{page}: claim.{node.attr}"


def test_the_readme_shows_python() -> None:
    assert fences(CHECKOUT / "README.md", "python")


def test_the_example_in_the_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(dibs) or ""
    code = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    assert "dibs.open" in code
    exec(compile(code, "example", "exec"), {"dibs": dibs})
    assert [path.name.partition(".")[0] for path in (tmp_path / "tasks/done").iterdir()] == [
        "task-7"
    ]
