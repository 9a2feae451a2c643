"""Keys that arrive together, as over a slow link, act one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from dibs_tui.lifecycle.output.escape import EscapeParser
from tests.tui.terminal import Terminal, terminal
from tests.tui.troubled import three_tasks

ESCAPE = "\x1b[27u"


@pytest.mark.parametrize("opens", ["\r", "t"])
def test_escape_right_after_a_key_closes_what_the_key_opened(tmp_path: Path, opens: str) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send(f"2{opens}{ESCAPE}3")
        shown.lacks("○ available")
        shown.shows("▌3 ● claimed 1 ")
        shown.settle()  # sooner, the key would be of the same burst
        shown.send("q")
        assert shown.leaves() == 0


def test_no_key_overtakes_another(tmp_path: Path) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send("i2/id=task-3\r")
        shown.shows("▌2 ○ available 1 of 2 match", "○ added by ")
        shown.send("q")
        assert shown.leaves() == 0


@pytest.mark.parametrize("escape", [ESCAPE, "\x1b"], ids=["its own", "as alt"])
def test_a_key_right_after_a_dialog_is_closed_has_its_effect(tmp_path: Path, escape: str) -> None:
    """Everything that can be open is closed by Escape; the bytes arrive in one write."""
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        for opens in ("?", "?prio", "s", "c", ":", "t", "/task"):
            closes_and_goes_on(shown, f"{opens}{escape}")
        for alone in "DuPM":  # an act is opened only by a key that comes alone
            shown.press("2", *(["/task\r"] if alone == "M" else []))
            shown.shows("▌2 ○ available ")
            opens_a_dialog(shown, alone)
            shown.send(f"{escape}{escape if alone == 'M' else ''}3")
            shown.shows("▌3 ● claimed 1 ")
        shown.send("q")
        assert shown.leaves() == 0


def test_a_key_right_after_enter_or_a_closing_command_has_its_effect(
    tmp_path: Path,
) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        for keys in ("?\r", "s\r", "sjj\r", "c\r", "\rq", f"sj{ESCAPE}s\r"):
            closes_and_goes_on(shown, keys)
        shown.send("2")
        shown.settle(0.2)
        shown.send("D")
        shown.shows("Cancel")
        shown.settle()
        shown.send("\r\r3")
        shown.shows("▌3 ● claimed 1 ")
        shown.settle()
        shown.send("q")
        assert shown.leaves() == 0


def opens_a_dialog(shown: Terminal, key: str) -> None:
    """Press the key of an act, and again where a busy machine has laid out the rows too late."""
    refused = "look again"
    while True:
        shown.settle(0.2)  # an act refuses a row that has just appeared
        shown.send(key)
        shown.wait_for(lambda: "Cancel" in shown.text or refused in shown.text)
        if "Cancel" in shown.text:
            return
        shown.press("j", "k")
        shown.lacks(refused)
        shown.settle(0.8)


def test_text_typed_right_after_a_field_is_opened_is_in_the_field(tmp_path: Path) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send("?priority")
        shown.shows("Raise the priority", "search      priority ")
        shown.send("\x03")
        shown.leaves()


def test_text_pasted_right_after_a_palette_command_is_in_the_dialog_that_it_opens(
    tmp_path: Path,
) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        for _ in range(5):
            shown.send(":")
            shown.shows("Search for commands")
            shown.send("requeue a list")
            shown.shows("Paste ids, check")
            shown.settle(0.1)  # sooner, the keys would count as pasted
            shown.send("\r\x1b[200~task-3\x1b[201~")
            shown.wait_for(lambda: any(" task-3 " in row for row in dialog(shown)))
            shown.send(ESCAPE)
            shown.lacks("Requeue a list")
        shown.send("q")
        assert shown.leaves() == 0


def test_text_typed_right_after_a_palette_command_is_in_the_field_that_it_opens(
    tmp_path: Path,
) -> None:
    """An act would be refused, as keys that arrive together may be pasted."""
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        for _ in range(5):
            shown.send(":")
            shown.shows("Search for commands")
            shown.send("help")
            shown.shows("Show what every key does")
            shown.settle(0.1)
            shown.send("\rpriority")
            shown.shows("search      priority ")
            shown.send(ESCAPE)
            shown.lacks("search      ")
        shown.send("q")
        assert shown.leaves() == 0


def dialog(shown: Terminal) -> list[str]:
    """The lines of the open list dialog."""
    lines = shown.text.split("\n")
    top = next((n for n, line in enumerate(lines) if "─ Requeue a list ─" in line), None)
    return (
        []
        if top is None
        else [line.split("│")[1] for line in lines[top + 1 :] if line.count("│") >= 2]
    )


@pytest.mark.fast("dibs_tui.lifecycle.output")
def test_escape_and_a_key_are_two_keys_unless_alt_and_the_key_are_bound() -> None:
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
    """Send these keys and a `3` in one write; they must lead from one view to the next."""
    shown.send("2")
    shown.shows("▌2 ○ available ")
    shown.settle()
    shown.send(f"{keys}3")
    shown.shows("▌3 ● claimed 1 ")


@pytest.mark.parametrize("more", ["c", "s", ":", "\x10", "X", "\x1b[200~text\x1b[201~"])
def test_a_key_right_after_ctrl_c_opens_nothing_in_a_dashboard_that_closes(
    tmp_path: Path, more: str
) -> None:
    with terminal(tmp_path, three_tasks(tmp_path)) as shown:
        shown.shows("task-2", "● live")
        shown.send(f"\x03{more}")
        assert shown.leaves() == 0
        assert "fault" not in shown.text
