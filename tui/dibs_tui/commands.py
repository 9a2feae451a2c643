"""The one registry of commands: keys, footer, palette, help screen and documentation read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Command(NamedTuple):
    """One thing that a person can do."""

    id: str
    keys: tuple[str, ...]
    """As Textual names them."""
    title: str
    """A word or two for the footer and the palette."""
    group: str
    text: str
    """One sentence for the help."""
    footer: bool = False
    destructive: bool = False
    """It changes the board: its key must not be one that terminals or habits send by themselves."""
    right: str = ""
    """What the `[rights]` of the configuration call it."""


def _commands() -> Iterator[Command]:
    group = "move"
    yield Command("down", ("down", "j"), "down", group, "The next line.")
    yield Command("up", ("up", "k"), "up", group, "The line before.")
    yield Command("page-down", ("pagedown",), "page down", group, "A screen further.")
    yield Command("page-up", ("pageup",), "page up", group, "A screen back.")
    yield Command("top", ("g", "home"), "top", group, "The first line.")
    yield Command("bottom", ("G", "end"), "bottom", group, "The last line.")
    yield Command("next-panel", ("tab",), "next panel", group, "To the next panel.")
    yield Command("previous-panel", ("shift+tab",), "panel before", group, "To the panel before.")

    group = "see"
    for key, panel, text in (
        ("1", "all", "Everything at once; on a narrow terminal in one table."),
        ("2", "available", "What waits to be taken."),
        ("3", "claimed", "What somebody works on, held locks beside it."),
        ("4", "stale", "Claims that are silent past their lease."),
        ("5", "failed", "What failed too often, or was parked."),
        ("6", "done", "What is finished."),
        ("7", "locks", "Named locks, held and free."),
        ("8", "problems", "Everything that asks for a person, with the reason."),
        ("9", "owners", "Who holds how much, and how regularly they beat."),
        ("0", "feed", "What just happened, newest first."),
    ):
        yield Command(f"panel-{panel}", (key,), panel, group, text)
    yield Command("inspect", ("enter",), "inspect", group, "The task whole.", footer=True)
    yield Command("pane", ("i",), "pane", group, "The task beside the table.", footer=True)
    yield Command("timeline", ("t",), "timeline", group, "The task's life, from the journal.")
    yield Command("open-url", ("o",), "open URL", group, "Open the address in the metadata.")
    yield Command("copy", ("y",), "copy", group, "Copy the exact name.")
    yield Command("copy-id", (), "copy id", group, "Copy the id.")
    yield Command("copy-owner", (), "copy owner", group, "Copy the owner.")
    yield Command("copy-path", (), "copy path", group, "Copy the path of the task's file.")
    yield Command("copy-line", (), "copy command", group, "Copy the `dibs show` line for it.")

    group = "list"
    yield Command(
        "filter", ("slash",), "filter", group,
        "Show what matches: owner=web-3 age>5m state=stale !id~tmp.", footer=True,
    )  # fmt: skip
    yield Command("next", ("n",), "next match", group, "The next match, round and round.")
    yield Command("previous", ("N",), "match before", group, "The match before.")
    yield Command(
        "sort", ("s",), "sort", group, "Choose what this table is sorted by.", footer=True
    )
    yield Command("invert", ("I",), "invert", group, "Sort the other way round.")
    yield Command("columns", ("c",), "columns", group, "Choose columns and their order.")
    yield Command(
        "pause", ("p",), "pause", group, "Let the list stand still, or go on.", footer=True
    )
    yield Command("mark", ("space",), "mark", group, "Mark the task, or take the mark away.")
    yield Command("range", ("v",), "range", group, "Mark from the last mark to here.")
    yield Command("mark-all", ("asterisk",), "mark all", group, "Mark all that is shown.")
    yield Command("back", ("escape",), "back", group, "Close, clear the filter, then the marks.")

    group = "act"
    for ident, keys, title, right, text in (
        (
            "force-release", ("X",), "release", "force_release",
            "Take a claim or a lock from its holder.",
        ),
        ("requeue", ("R",), "requeue", "requeue", "Let a failed, done or stale task wait again."),
        ("park", ("P",), "park", "park", "Set a task apart, where no worker takes it."),
        ("raise", ("plus",), "raise", "prioritise", "A higher priority: it is taken sooner."),
        ("lower", ("minus",), "lower", "prioritise", "A lower priority: it is taken later."),
        ("matches", ("M",), "all matches", "", "Act on all that the filter lists, as one plan."),
        (
            "undo", ("u", "z"), "undo", "undo",
            "Undo the last act, or the chosen row's; then the one before.",
        ),
        ("purge", ("D",), "purge", "purge", "Remove what was done long enough ago; counted first."),
        ("forget", ("F",), "forget", "forget", "Free the id of a task that is gone."),
        (
            "requeue-list", (), "requeue a list", "requeue",
            "Paste ids; each is resolved to the exact name before anything is done.",
        ),
        (
            "reaping", (), "reaping", "reap",
            "Let this dashboard give back what is stale, or let it be.",
        ),
    ):  # fmt: skip
        footer = ident in ("force-release", "requeue")
        yield Command(ident, keys, title, group, text, footer, destructive=True, right=right)
    yield Command("unlock", (), "unlock", group, "Leave the read-only mode for five minutes.")
    yield Command(
        "brake", (), "release the brake", group,
        "Let acts on many through although the storage is a suspect.",
    )  # fmt: skip

    group = "screen"
    yield Command("compact", ("ctrl+e",), "compact", group, "No frames and one line of head.")
    yield Command("wide", ("w",), "wide", group, "Every column of this table, or back.")
    yield Command("theme", (), "theme", group, "The next theme.")
    yield Command("mute", ("m",), "mute", group, "Silence the alerts, or let them sound.")
    yield Command("wall", (), "wall", group, "The wall display.")
    yield Command(
        "refresh", ("ctrl+r", "ctrl+l"), "refresh", group, "Look at everything again now."
    )
    yield Command("commands", ("colon", "ctrl+p"), "commands", group, "Find a command by its name.")
    yield Command(
        "help", ("question_mark",), "help", group, "What every key does; searchable.", footer=True
    )
    yield Command(
        "suspend",
        ("ctrl+z",),
        "suspend",
        group,
        "Stop, and give the shell the terminal; fg goes on.",
    )
    yield Command("quit", ("q",), "quit", group, "Leave; nothing is lost.", footer=True)


COMMANDS = tuple(_commands())
BY_ID = {command.id: command for command in COMMANDS}
GROUPS = {"move": "Move", "see": "See", "list": "The list", "act": "Act", "screen": "The screen"}
_SPELLED = {
    "slash": "/", "question_mark": "?", "asterisk": "*", "colon": ":", "escape": "Esc",
    "space": "Space", "enter": "Enter", "tab": "Tab", "shift+tab": "Shift+Tab", "down": "↓",
    "up": "↑", "pagedown": "PgDn", "pageup": "PgUp", "home": "Home", "end": "End",
    "plus": "+", "minus": "-",
}  # fmt: skip


def spelled(key: str) -> str:
    """A key as people write it."""
    return _SPELLED.get(key, key)
