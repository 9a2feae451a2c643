"""The reference of the Python API, from its signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import dibs
import dibs.aio
from reference.markdown import cell, inline

_MADE = "<!-- Made by `python -m reference`: change the docstrings. -->"


def python_api() -> str:
    """The page: every public name of `dibs`, then those of `dibs.aio`."""
    lines = [
        _MADE,
        "",
        "# The Python API: reference",
        "",
        "This page is made from the docstrings, which `help(dibs)` shows too. Every example runs",
        "as a test. How to write a worker is in [the page on Python](../python.md).",
    ]
    for module in (dibs, dibs.aio):
        lines += ["", f"## {module.__name__}"]
        for name in sorted(module.__all__, key=lambda name: _rank(module, name)):
            lines += ["", *_entry(f"{module.__name__}.{name}", getattr(module, name), "###")]
    return "\n".join([*lines, ""])


def _rank(module: ModuleType, name: str) -> tuple[int, str]:
    """Functions first, then classes, then errors."""
    value = getattr(module, name)
    if not inspect.isclass(value):
        return 0, name
    return 2 if issubclass(value, BaseException) else 1, name


def _entry(name: str, value: Any, level: str) -> Iterator[str]:
    short = name.rpartition(".")[2]
    yield f"{level} {name}"
    if not inspect.isclass(value) and callable(value):
        yield from ("", "```python", f"{short}{_signature(inspect.unwrap(value))}", "```")
    if text := inspect.getdoc(value):
        yield from _prose(text)
    if inspect.isclass(value):
        yield from _fields(value)
        for part, member in vars(value).items():
            if not part.startswith("_") and (
                inspect.isfunction(member) or isinstance(member, property)
            ):
                yield from ("", *_entry(f"{short}.{part}", member, "####"))


def _fields(kind: type) -> Iterator[str]:
    """The table of the public fields of a class."""
    found = [(cell(ast.unparse(field)), inline(text)) for field, text in documented(kind)]
    if found:
        yield from ("", "| field | means |", "|---|---|")
        yield from (f"| `{field}` | {text} |" for field, text in found)


def documented(kind: type) -> Iterator[tuple[ast.AnnAssign, str]]:
    """The public fields of a class, each with the text after it, which says what it means."""
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    for field, after in pairwise([*body.body, ast.Pass()]):
        if isinstance(field, ast.AnnAssign) and not ast.unparse(field.target).startswith("_"):
            meaning = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                meaning = " ".join(str(after.value.value).split())
            yield field, meaning


def _signature(function: Any) -> str:
    """The signature with its annotations as they are written."""
    signature = inspect.signature(function)
    words, star = [], False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind == parameter.KEYWORD_ONLY and not star:
            words.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        word = f"{stars}{parameter.name}"
        if parameter.annotation is not parameter.empty:
            word += f": {_written(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            word += f" = {parameter.default!r}"
        words.append(word)
    return f"({', '.join(words)}) -> {_written(signature.return_annotation)}"


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _prose(text: str) -> Iterator[str]:
    """A docstring as Markdown: examples and indented lines are code."""
    for block in re.split(r"\n\n+(?=\S)", text):
        prose, _, example = block.partition(">>> ")
        before, indent, code = prose.partition("\n    ")
        if before.strip():
            yield from ("", before.strip())
        if indent:
            yield from ("", "```text", *f"    {code}".rstrip().splitlines(), "```")
        if example:
            yield from ("", "```pycon", inspect.cleandoc(f">>> {example}"), "```")
