"""Keys that come together, as over a slow link, do what they do one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from dibs_tui.output.escape import EscapeParser
from tests.tui.terminal import Terminal, terminal
from tests.tui.troubled import three_tasks

ESCAPE = "\x1b[27u"


@pytest.mark.parametrize("opens", ["\r", "t"])
def test_escape_right_behind_a_key_closes_what_it_opened(tmp_path: Path, opens: str) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send(f"2{opens}{ESCAPE}3")
        shown.shows("1 all  2 available  3 claimed", "─ 3 ● claimed 1 ")
        shown.send("q")
        assert shown.leaves() == 0


def test_no_key_overtakes_another(tmp_path: Path) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send("i2/id=task-3\r")
        shown.shows("─ 2 ○ available 1 of 2 match", "inspect · ")
        shown.send("q")
        assert shown.leaves() == 0


@pytest.mark.parametrize("escape", [ESCAPE, "\x1b"], ids=["its own", "as alt"])
def test_a_key_right_behind_the_one_that_closes_a_dialog_does_what_it_does(
    tmp_path: Path, escape: str
) -> None:
    """Everything that can be open is closed by Escape; the bytes come in one write."""
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        for opens in ("?", "?prio", "s", "c", ":", "D", "u", "t", "/task", "/task\rM"):
            closes_and_goes_on(shown, f"{opens}{escape}")
        shown.press("2")
        shown.settle(0.2)  # no act takes a row that came just now
        shown.send("P")
        shown.shows("Cancel")
        shown.send(f"{escape}3")
        shown.shows("1 all  2 available  3 claimed", "─ 3 ● claimed 1 ")
        shown.send("q")
        assert shown.leaves() == 0


def test_a_key_right_behind_enter_or_a_command_that_closes_does_what_it_does(
    tmp_path: Path,
) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        for keys in ("?\r", "s\r", "sjj\r", "c\r", "D\r", "\rq", f"sj{ESCAPE}s\r"):
            closes_and_goes_on(shown, keys)
        shown.send("q")
        assert shown.leaves() == 0


def test_what_is_typed_right_behind_the_key_that_opens_a_field_is_in_it(tmp_path: Path) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send("?priority")
        shown.shows("A higher priority", "│ priority ")
        shown.send("\x03")
        shown.leaves()


@pytest.mark.parametrize("typed", ["task-3", "\x1b[200~task-3\x1b[201~"], ids=["typed", "pasted"])
def test_what_comes_right_behind_a_command_of_the_palette_is_in_the_dialog_that_it_opens(
    tmp_path: Path, typed: str
) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        for _ in range(5):
            shown.send(":")
            shown.shows("Search for commands")
            shown.send("requeue a list")
            shown.shows("Paste ids; each")
            shown.settle(0.1)  # or it is taken for pasted
            shown.send(f"\r{typed}")
            shown.wait_for(lambda: any(" task-3 " in row for row in dialog(shown)))
            shown.send(ESCAPE)
            shown.lacks("requeue a list")
        shown.send("q")
        assert shown.leaves() == 0


def dialog(shown: Terminal) -> list[str]:
    """The lines of the open dialog of a list."""
    lines = shown.text.split("\n")
    top = next((n for n, line in enumerate(lines) if "─ requeue a list ─" in line), None)
    return (
        []
        if top is None
        else [line.split("│")[2] for line in lines[top + 1 :] if line.count("│") >= 4]
    )


def test_escape_and_a_key_are_two_keys_unless_that_key_with_alt_does_something() -> None:
    def keys(text: str) -> list[str]:
        parser = EscapeParser()
        return [getattr(found, "key", "") for found in (*parser.feed(text), *parser.feed(""))]

    assert keys("\x1b3") == ["escape", "3"]
    assert keys("\x1bq") == ["escape", "q"]
    assert keys("\x1b?") == ["escape", "question_mark"]
    assert keys("\x1b\r") == ["escape", "enter"]
    assert keys("\x1b[A\x1bOP") == ["up", "f1"]
    EscapeParser.kept = frozenset({"alt+q"})
    try:
        assert keys("\x1bq") == ["alt+q"]
    finally:
        EscapeParser.kept = frozenset()


def closes_and_goes_on(shown: Terminal, keys: str) -> None:
    """These keys and a `3` in one write lead from one view to the next."""
    shown.send("2")
    shown.shows("1 all  2 available  3 claimed", "─ 2 ○ available ")
    shown.settle()
    shown.send(f"{keys}3")
    shown.shows("1 all  2 available  3 claimed", "─ 3 ● claimed 1 ")
