"""What the parsers know of each command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from dibs.cli import grammar, running
from dibs.cli.examples import EXAMPLES
from dibs.cli.grammar import ALIASES, GROUPS, RUN, SEE_EXITS, VERBS
from dibs_tui import command_line

DASHBOARD = "the dashboard"
"""The title of the commands that are no verbs of the core."""


class ArgumentEntry(NamedTuple):
    """One argument or option, as it is written and what it means."""

    spelled: str
    text: str


class CommandEntry(NamedTuple):
    """One command with all that its help says."""

    word: str
    group: str
    summary: str
    usage: str
    arguments: list[ArgumentEntry]
    notes: str
    """What its help says after the arguments, such as its own exit codes."""
    examples: tuple[str, ...]
    aliases: list[str]


def commands() -> Iterator[CommandEntry]:
    """Every command, in the order of the help."""
    for key, title in GROUPS.items():
        for word, verb in VERBS.items():
            if verb.group == key:
                yield _command(word, title, verb.text, grammar.parser_of(word))
        if key == "work":
            yield _command("run", title, RUN, running.parser())
    for word, demo in (("board", False), ("demo", True)):
        parser = command_line.parser_of(demo=demo)
        yield _command(word, DASHBOARD, str(parser.description), parser)


def common() -> list[ArgumentEntry]:
    """The options that every command has."""
    parser = argparse.ArgumentParser()
    grammar.common(parser)
    return [ArgumentEntry(_spelled(action), str(action.help)) for action in parser._actions]


def _command(word: str, group: str, summary: str, parser: argparse.ArgumentParser) -> CommandEntry:
    shared = {argument.spelled for argument in common()}
    actions = [action for action in parser._actions if _spelled(action) not in shared]
    words = [f"dibs {word}", *map(_in_usage, sorted(actions, key=_place))]
    notes = str(parser.epilog)
    return CommandEntry(
        word,
        group,
        " ".join(summary.split()),
        str(parser.usage or " ".join(words)),
        [ArgumentEntry(_spelled(action), " ".join(str(action.help).split())) for action in actions],
        "" if notes == SEE_EXITS else notes,
        EXAMPLES.get(word, ()),
        [alias for alias, verb in ALIASES.items() if verb == word],
    )


def _place(action: argparse.Action) -> int:
    """Arguments come first, then what is required."""
    return 0 if not action.option_strings else 1 if action.required else 2


def _value(action: argparse.Action) -> str:
    """What stands for the value of an argument; a switch has none."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        name = "|".join(map(str, action.choices))
    else:
        name = str(action.metavar or action.dest.upper())
    if action.nargs == "?":
        return f"[{name}]"
    return {"*": f"[{name}…]", "+": f"{name}…"}.get(str(action.nargs), name)


def _spelled(action: argparse.Action) -> str:
    return " ".join(filter(None, (", ".join(action.option_strings), _value(action))))


def _in_usage(action: argparse.Action) -> str:
    if not action.option_strings:
        return _value(action)
    text = f"{action.option_strings[0]} {_value(action)}".rstrip()
    return text if action.required else f"[{text}]"
