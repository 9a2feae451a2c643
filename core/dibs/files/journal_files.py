"""The names and the order of the journal's files."""

from __future__ import annotations

FOLDER = ".dibs/journal"

LONG = 32 << 20
"""Bytes after which a file is rotated."""

END = ".jsonl"


def place(file: str) -> tuple[str, int]:
    """The sort key of a file; the current file of a boot and mount comes last."""
    return current(file), number(file)


def number(file: str) -> int:
    """The number of a rotated file; a huge one for the current file."""
    return 1 << 62 if file == current(file) else int(file.split(".")[-2])


def current(file: str) -> str:
    """The name that a rotated file had before."""
    name, _, digits = file.removesuffix(END).rpartition(".")
    numbered = file.endswith(END) and _is_number(digits) and not name.endswith("/")
    return f"{name}{END}" if numbered else file


def aside(file: str, number: int) -> str:
    """The name of a file after its rotation under a number."""
    return f"{file.removesuffix(END)}.{number}{END}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16 and text[0] != "0"
