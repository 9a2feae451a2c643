"""Build `dibs.pyz`: `python -m one_file [PATH]` (default: dist/dibs.pyz)."""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

CORE = Path(__file__).parents[1]
PACKAGE = CORE / "dibs"
SERVER = PACKAGE / "serve"
SHARED = (SERVER / "__init__.py", SERVER / "tokens.py")
"""What the file has of the server, which needs a package that must be installed: the tokens."""
MOST = 260_000
"""The limit for the file, in bytes."""
_LEFT_OUT = ("__pycache__", "mcp", "postgres")
"""Folders that are not in the file: both need a package that must be installed beside it."""
_SHEBANG = b"#!/usr/bin/env python3\n"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of each member: the same source makes the same file."""


def main(target: Path) -> None:
    """Build the file and say how long it is; one that is too long is an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    built = target.with_name(f"{target.name}.new")
    built.write_bytes(pyz())
    built.chmod(0o755)
    built.replace(target)
    size = target.stat().st_size
    print(f"{target}: {size:,} bytes")
    if size > MOST:
        raise SystemExit(f"{target} is longer than {MOST:,} bytes")


def pyz() -> bytes:
    """The file: a zip file that Python runs and imports from."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, "__main__.py", (PACKAGE / "__main__.py").read_bytes())
        _add(archive, "dibs/__init__.py", (CORE / "one_file/start.py").read_bytes())
        # It is compressed already; what Python has to find at once is not.
        _add(archive, "dibs/modules", packed(), zipfile.ZIP_STORED)
        version = _version()
        metadata = f"Metadata-Version: 2.1\nName: dibs\nVersion: {version}\n"
        _add(archive, f"dibs-{version}.dist-info/METADATA", metadata.encode())
    return _SHEBANG + out.getvalue()


def packed() -> bytes:
    """Every file of the package with its name, compressed together."""
    parts = [part for name, data in alike(dict(files())) for part in (name.encode(), data)]
    return zlib.compress(b"\0".join(parts), 9)


def alike(found: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Each file after one that has many of its words: what both have is compressed once."""
    words = {name: set(re.findall(rb"\w+", data)) for name, data in sorted(found.items())}
    name = next(iter(words))
    while name:
        last = words.pop(name)
        yield name, found[name]
        name = max(
            words, default="", key=lambda each: len(last & words[each]) / _weight(words[each])
        )


def _weight(words: set[bytes]) -> float:
    """By this the common words count less for a long file, which has more of everything."""
    return float(1 + len(words) ** 0.6)


def files() -> Iterator[tuple[str, bytes]]:
    """The files of the package by their paths in it; code without its documentation."""
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in names:
            path = Path(folder, name)
            if SERVER in path.parents and path not in SHARED:
                continue
            data = path.read_bytes()
            yield (
                path.relative_to(PACKAGE).as_posix(),
                bare(data.decode()).encode() if path.suffix == ".py" else data,
            )


def bare(source: str) -> str:
    """The same code on the same lines, without what only readers and checkers of types need."""
    lines = source.splitlines(keepends=True)
    nodes = list(ast.walk(ast.parse(source)))
    cuts = [*_docstrings(nodes), *_types(nodes, lines), *_variables(nodes), *_comments(source)]
    for (first, start), (last, end), instead in sorted(cuts, reverse=True):
        head = lines[first - 1].encode()[:start].decode()
        tail = lines[last - 1].encode()[end:].decode()
        blank = "\n" * (last - first)
        lines[first - 1 : last] = f"{head}{instead}{blank}{tail}".splitlines(keepends=True)
    return _tight(_indented(re.sub(r"[ \t]+$", "", "".join(lines), flags=re.MULTILINE)))


def _indented(source: str) -> str:
    """The same lines with one tab for four spaces, outside of texts that have several lines."""
    lines, inside = source.splitlines(keepends=True), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        # From Python 3.12 on an f-string is several tokens, of which these are its text.
        if tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE"):
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    for n, line in enumerate(lines):
        spaces = len(line) - len(line.lstrip(" "))
        if spaces and n + 1 not in inside:
            lines[n] = "\t" * (spaces // 4) + line[spaces:]
    return "".join(lines)


def _tight(source: str) -> str:
    """The same lines without the spaces around operators, outside of texts."""
    lines, last, texts = source.splitlines(keepends=True), None, 0
    gaps = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if last is not None and not texts and tokenize.OP in (last.type, token.type):
            (row, end), (_, start) = last.end, token.start
            if row == token.start[0] and end < start and token.line[start:].strip():
                gaps.append((row, end, start))
        kind = tokenize.tok_name[token.type]  # from Python 3.12 on an f-string is several tokens
        texts += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        last = token if token.string.strip() else None
    for row, end, start in reversed(gaps):
        lines[row - 1] = lines[row - 1][:end] + lines[row - 1][start:]
    return "".join(lines)


Cut = tuple[tuple[int, int], tuple[int, int], str]
"""From a line and byte up to another, and what is written instead."""


def _docstrings(nodes: list[ast.AST]) -> Iterator[Cut]:
    """Every text that is a statement; an empty one stays where it is all that a body has."""
    for node in nodes:
        body = getattr(node, "body", None)
        texts = [each for each in body if _is_text(each)] if isinstance(body, list) else []
        for each in texts:
            yield _place(each), _end(each), '""' if len(texts) == len(body or ()) else ""


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _types(nodes: list[ast.AST], lines: list[str]) -> Iterator[Cut]:
    """The types of functions, which nobody asks for at run time, and the imports only for them."""
    for node in nodes:
        if isinstance(node, ast.arg) and node.annotation is not None:
            row, column = _place(node)
            yield (row, column + len(node.arg.encode())), _end(node), ""
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            row, column = _place(node.returns)
            before = lines[row - 1].encode()[:column].rpartition(b"->")[0].rstrip()
            yield (row, len(before)), _end(node.returns), ""
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            if node.orelse:
                yield _place(node.body[0]), _end(node.body[-1]), "pass"
            else:  # at the top of a module, so that it is never all that a body has
                yield _place(node), _end(node), ""


def _variables(nodes: list[ast.AST]) -> Iterator[Cut]:
    """The types of variables; those of a class's fields may be asked for."""
    fields = {id(each) for node in nodes if isinstance(node, ast.ClassDef) for each in node.body}
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and id(node) not in fields:
            if node.value is None:
                yield _place(node), _end(node), "pass"
            else:
                yield _end(node.target), _end(node.annotation), ""


def _place(node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
    assert node.end_lineno is not None  # the parser sets both
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _comments(source: str) -> Iterator[Cut]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            (row, start), (_, end) = token.start, token.end
            before = len(token.line[:start].encode())
            yield (row, before), (row, before + len(token.line[start:end].encode())), ""


def _version() -> str:
    fields = tomllib.loads((CORE.parent / "pyproject.toml").read_text())
    return str(fields["project"]["version"])


def _add(
    archive: zipfile.ZipFile, name: str, data: bytes, kind: int = zipfile.ZIP_DEFLATED
) -> None:
    member = zipfile.ZipInfo(name, _LONG_AGO)
    member.compress_type = kind
    member.external_attr = 0o644 << 16
    archive.writestr(member, data, compresslevel=9)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else CORE.parent / "dist/dibs.pyz")
