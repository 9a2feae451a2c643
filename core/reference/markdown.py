"""The command line's reference as one page of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dibs.cli.topics import page
from reference.commands import ArgumentEntry, CommandEntry, commands, common

MADE = "<!-- Made by `python -m reference`: change the parsers, the examples or the topics. -->"
_TOPICS = {"exit-codes": "Exit codes", "filters": "Filters", "environment": "Environment"}


def command_line() -> str:
    """The page: the common options, every command, and the topics that are tables."""
    lines = [
        MADE,
        "",
        "# The command line: reference",
        "",
        "`dibs [-d BOARD] [--json] VERB …`. This page is made from the command line's own help:",
        "`dibs VERB --help` and `man dibs-VERB` say the same. What a verb guarantees, the JSON and",
        "`dibs run` are explained in [the page of the command line](../../core/CLI.md).",
        "",
        "Before or after every verb:",
        "",
        *_table(common()),
    ]
    group = ""
    for command in commands():
        if command.group != group:
            group = command.group
            lines += ["", f"## {inline(group[0].upper() + group[1:])}"]
        lines += ["", *_section(command)]
    for topic, title in _TOPICS.items():
        lines += ["", f"## {title}", "", "```text", str(page(topic)).rstrip(), "```"]
    return "\n".join([*lines, ""])


def _section(command: CommandEntry) -> Iterator[str]:
    yield f"### dibs {command.word}"
    yield ""
    yield f"{inline(_sentence(command.summary))}"
    for alias in command.aliases:
        yield f"`dibs {alias}` is the same."
    yield from ("", "```text", command.usage, "```", "")
    if command.arguments:
        yield from _table(command.arguments)
        yield ""
    if command.notes:
        yield from ("```text", command.notes, "```", "")
    yield from ("```shell", *command.examples, "```")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:].removesuffix(".") + "."


def _table(arguments: list[ArgumentEntry]) -> Iterator[str]:
    yield from ("| argument | means |", "|---|---|")
    for spelled, text in arguments:
        yield f"| `{cell(spelled)}` | {inline(text)} |"


def cell(code: str) -> str:
    """Code in a cell of a table."""
    return code.replace("|", "\\|")


def inline(text: str) -> str:
    """A text in which only what is quoted as code is Markdown."""
    parts = text.split("`")
    plain = [re.sub(r"([\\*_<>|~\[\]])", r"\\\1", part) for part in parts[::2]]
    code = [f"`{part}`" for part in parts[1::2]]
    return "".join(p + c for p, c in zip(plain, [*code, ""], strict=True))
