"""The registry of commands; keys, footer, palette, help and documentation are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Command(NamedTuple):
    """One thing that the user can do."""

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
    """It changes the board, so its key must not be one that is easily pressed by accident."""
    right: str = ""
    """Its name in the `[rights]` of the configuration; empty where it needs none."""


def _commands() -> Iterator[Command]:
    group = "move"
    yield Command("down", ("down", "j"), "down", group, "Move down one line.")
    yield Command("up", ("up", "k"), "up", group, "Move up one line.")
    yield Command("page-down", ("pagedown",), "page down", group, "Move down one page.")
    yield Command("page-up", ("pageup",), "page up", group, "Move up one page.")
    yield Command("top", ("g", "home"), "top", group, "Go to the first line.")
    yield Command("bottom", ("G", "end"), "bottom", group, "Go to the last line.")
    yield Command(
        "next-panel",
        ("tab",),
        "next panel",
        group,
        "Go to the next panel, or to the tasks of a problem.",
    )
    yield Command(
        "previous-panel", ("shift+tab",), "previous panel", group, "Go to the previous panel."
    )

    group = "see"
    for key, panel, text in (
        ("1", "all", "Show all panels; on a narrow terminal, one table."),
        ("2", "available", "Show the tasks that workers can claim."),
        ("3", "claimed", "Show claimed tasks and held locks."),
        ("4", "stale", "Show claims whose lease expired or whose process exited."),
        ("5", "failed", "Show failed and parked tasks."),
        ("6", "done", "Show finished tasks."),
        ("7", "locks", "Show locks, held and free."),
        ("8", "problems", "Show everything that needs attention, with the reason."),
        ("9", "owners", "Show each owner with its claims and heartbeats."),
        ("0", "feed", "Show what just happened, newest first."),
    ):
        yield Command(f"panel-{panel}", (key,), panel, group, text)
    yield Command("inspect", ("enter",), "inspect", group, "Show all details.", footer=True)
    yield Command(
        "pane", ("i",), "pane", group, "Show or hide the details beside the table.", footer=True
    )
    yield Command("timeline", ("t",), "timeline", group, "Show the history from the log.")
    yield Command(
        "messages", ("l",), "messages", group, "Read the notices and the last messages in full."
    )
    yield Command("open-url", ("o",), "open URL", group, "Open the URL in the metadata.")
    yield Command("copy", ("y",), "copy", group, "Copy the exact name.")
    yield Command("copy-id", (), "copy id", group, "Copy the id.")
    yield Command("copy-owner", (), "copy owner", group, "Copy the owner.")
    yield Command("copy-path", (), "copy path", group, "Copy the path of the task's file.")
    yield Command("copy-line", (), "copy command", group, "Copy the `dibs show` command.")

    group = "list"
    yield Command(
        "filter", ("slash",), "filter", group,
        "Show only matching rows: owner=web-3 age>5m state=stale !id~tmp.", footer=True,
    )  # fmt: skip
    yield Command(
        "save-filter", (), "save filter", group,
        "Save the filter under a name, which the palette lists from then on.",
    )  # fmt: skip
    yield Command("export", ("e",), "export", group, "Save the rows shown as CSV or JSON.")
    yield Command("next", ("n",), "next match", group, "Go to the next match; wraps around.")
    yield Command("previous", ("N",), "previous match", group, "Go to the previous match.")
    yield Command("sort", ("s",), "sort", group, "Choose the column to sort by.", footer=True)
    yield Command("invert", ("I",), "invert", group, "Reverse the sort order.")
    yield Command("columns", ("c",), "columns", group, "Choose the columns and their order.")
    yield Command("open", ("right",), "open", group, "Show the tasks that a line stands for.")
    yield Command("close", ("left",), "fold", group, "Show many tasks with one cause as one line.")
    yield Command(
        "freeze", ("p",), "freeze", group,
        "Freeze the list, or unfreeze it; workers are not affected.", footer=True,
    )  # fmt: skip
    yield Command("mark", ("space",), "mark", group, "Mark or unmark the row.")
    yield Command("range", ("v",), "range", group, "Mark all rows from the last mark to here.")
    yield Command("mark-all", ("asterisk",), "mark all", group, "Mark all rows shown.")
    yield Command(
        "back",
        ("escape",),
        "back",
        group,
        "Close the dialog, clear the filter, or clear the marks.",
    )

    group = "act"
    for ident, keys, title, right, text in (
        (
            "force-release", ("X",), "force-release", "force_release",
            "Force-release: take a task or a lock from its holder.",
        ),
        (
            "requeue", ("R",), "requeue", "requeue",
            "Put a failed, done, stale or asked task back in the queue.",
        ),
        (
            "park", ("P",), "park", "park",
            "Park a task: no worker claims it until it is requeued.",
        ),
        (
            "answer", ("A",), "answer", "answer",
            "Answer a task's question: it becomes available, and later claims have the answer.",
        ),
        ("raise", ("plus",), "raise", "prioritize", "Raise the priority: claimed sooner."),
        ("lower", ("minus",), "lower", "prioritize", "Lower the priority: claimed later."),
        ("matches", ("M",), "all matches", "", "Act on all rows that the filter lists."),
        (
            "undo", ("u", "z"), "undo", "undo",
            "Undo the last requeue, park, answer, priority change or pause. "
            "Taking a claim from its holder cannot be undone.",
        ),
        (
            "pause-board", ("B",), "pause board", "pause",
            "Pause new claims on the board or on some hosts, or let workers claim again.",
        ),
        ("purge", ("D",), "purge", "purge", "Remove done tasks older than an age."),
        ("forget", ("F",), "forget", "forget", "Free the id of a task that is gone."),
        (
            "deliveries", (), "deliveries", "deliveries",
            "Show what could not be sent to the board's hooks, and send it again.",
        ),
        (
            "requeue-list", (), "requeue a list", "requeue",
            "Paste ids, check the exact names found, then requeue them.",
        ),
        (
            "reaping", (), "reaping", "reap",
            "Requeue stale claims automatically from this dashboard: on or off.",
        ),
    ):  # fmt: skip
        footer = ident in ("force-release", "requeue")
        yield Command(ident, keys, title, group, text, footer, destructive=True, right=right)
    yield Command("unlock", (), "unlock", group, "Leave read-only mode for five minutes.")
    yield Command(
        "brake", (), "allow bulk acts", group,
        "Allow acts on many claims although the storage is suspect.",
    )  # fmt: skip

    group = "screen"
    yield Command(
        "compact",
        ("ctrl+e",),
        "compact",
        group,
        "Hide the graphs, or show them.",
    )
    yield Command("wide", ("w",), "wide", group, "Show all columns, or the default ones.")
    yield Command("theme", (), "theme", group, "Switch to the next theme.")
    yield Command("mute", ("m",), "mute", group, "Mute or unmute the alerts.")
    yield Command("wall", (), "wall", group, "Open the wall display.")
    yield Command("refresh", ("ctrl+r", "ctrl+l"), "refresh", group, "Read the board again now.")
    yield Command("commands", ("colon", "ctrl+p"), "commands", group, "Find a command by name.")
    yield Command(
        "help",
        ("question_mark",),
        "help",
        group,
        "Show what every key does; searchable.",
        footer=True,
    )
    yield Command(
        "suspend",
        ("ctrl+z",),
        "suspend",
        group,
        "Suspend to the shell; `fg` resumes.",
    )
    yield Command("quit", ("q",), "quit", group, "Quit; workers are not affected.", footer=True)


COMMANDS = tuple(_commands())
ALONE = frozenset({
    *(command.id for command in COMMANDS if command.destructive),
    "open-url", "copy", "copy-id", "copy-owner", "copy-path", "copy-line", "save-filter", "export",
    "invert", "freeze", "unlock", "brake", "compact", "wide", "theme", "mute", "wall", "refresh",
    "suspend", "quit",
})  # fmt: skip
"""What changes more than the view, is kept for the next time, or leaves the dashboard.

Such a key has no effect among others that arrive together, as pasted text does. Over a slow link
typed keys arrive together too, so those that only move, mark, filter or change the view do work.
"""
BY_ID = {command.id: command for command in COMMANDS}
GROUPS = {"move": "Move", "see": "View", "list": "List", "act": "Act", "screen": "Screen"}
_SPELLED = {
    "slash": "/", "question_mark": "?", "asterisk": "*", "colon": ":", "escape": "Esc",
    "space": "Space", "enter": "Enter", "tab": "Tab", "shift+tab": "Shift+Tab", "down": "↓",
    "up": "↑", "left": "←", "right": "→",
    "pagedown": "PgDn", "pageup": "PgUp", "home": "Home", "end": "End",
    "plus": "+", "minus": "-",
}  # fmt: skip


def spelled(key: str) -> str:
    """The key as the help and the footer write it."""
    return _SPELLED.get(key, key)
