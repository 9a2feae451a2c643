"""Text pasted without the marks of a paste: its keys arrive together, and run no command."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.lifecycle.output.escape import EscapeParser
from dibs_tui.model.commands import ALONE, BY_ID
from tests.tui.terminal import terminal
from tests.tui.troubled import three_tasks

LONE = ("quit", "mute", "freeze", "suspend", "export", "copy", "pause-board", "force-release")
TOGETHER = ("down", "panel-stale", "filter", "mark", "help", "commands", "inspect", "back")


@pytest.mark.parametrize("text", ["quick", "queue is full\r", "qq"])
def test_pasted_text_that_begins_with_q_does_not_quit(tmp_path: Path, text: str) -> None:
    with terminal(tmp_path, three_tasks(tmp_path)) as shown:
        shown.shows("task-2", "● live")
        shown.send(text)
        # One of its later letters may have said something newer.
        shown.wait_for(lambda: "ignored: keys" in shown.text or "not in this dialog" in shown.text)
        shown.press("\x1b", "\x1b")
        shown.send("3")
        shown.shows("▌3 ● claimed 1 ")
        shown.settle()
        shown.send("q")
        assert shown.leaves() == 0


@pytest.mark.parametrize(("text", "effect"), [("mj", "MUTED"), ("pj", "FROZEN"), ("Bj", "Cancel")])
def test_the_first_key_of_a_paste_does_nothing_and_alone_it_works(
    tmp_path: Path, text: str, effect: str
) -> None:
    with terminal(tmp_path, three_tasks(tmp_path)) as shown:
        shown.shows("task-2", "● live")
        shown.send(text)
        shown.shows("ignored: keys")
        shown.settle(0.1)
        assert effect not in shown.text
        shown.send(text[0])
        shown.shows(effect)


def test_a_pasted_command_line_does_not_run_from_the_palette(tmp_path: Path) -> None:
    with terminal(tmp_path, three_tasks(tmp_path)) as shown:
        shown.shows("task-2", "● live")
        shown.send(":")
        shown.shows("Search for commands")
        shown.send("quit\r")
        shown.shows("quit: ignored: keys came too fast")
        shown.send("3")
        shown.shows("▌3 ● claimed 1 ")


def test_pasted_text_does_not_quit_the_wall(tmp_path: Path) -> None:
    with terminal(tmp_path, "--wall", three_tasks(tmp_path)) as shown:
        shown.shows("read-only", "q quits")
        shown.send("sqs")
        shown.send("?")
        shown.shows("every key")


@pytest.mark.fast("dibs_tui.acting")
def test_keys_of_one_read_are_known_before_the_first_of_them_is_handled() -> None:
    guard, now = KeyBurstGuard(), time.monotonic()
    guard.arrived([now, now + 0.0001, now + 0.0002])
    guard.pressed(now)
    assert guard.together
    assert guard.burst
    guard.pressed(now + 0.0002)
    assert guard.together
    guard.arrived([now + 1])
    guard.pressed(now + 1)
    assert not guard.together
    assert not guard.burst


@pytest.mark.fast("dibs_tui.acting")
def test_keys_of_two_reads_right_after_each_other_are_together_too() -> None:
    guard, now = KeyBurstGuard(), time.monotonic()
    guard.arrived([now])
    guard.arrived([now + 0.002])
    guard.pressed(now)
    assert guard.together


@pytest.mark.fast("dibs_tui.acting")
def test_of_a_long_paste_every_key_is_known_as_one_and_nothing_is_kept() -> None:
    guard, now = KeyBurstGuard(), time.monotonic()
    times = [now + n / 100_000 for n in range(10_000)]
    guard.arrived(times)
    for at in times:
        guard.pressed(at)
        assert guard.together
    guard.arrived([now + 9])
    guard.pressed(now + 9)
    assert not guard.together
    assert len(guard._read) == 1


@pytest.mark.fast("dibs_tui.model")
def test_commands_that_outlive_the_view_need_a_key_of_their_own() -> None:
    assert set(BY_ID) >= ALONE > set(LONE)
    assert not ALONE & set(TOGETHER)
    assert all(command.id in ALONE for command in BY_ID.values() if command.destructive)


@pytest.mark.fast("dibs_tui.lifecycle.output")
def test_the_parser_reports_the_keys_of_a_read_before_it_hands_them_out() -> None:
    reads: list[list[float]] = []
    parser = EscapeParser()
    EscapeParser.arrived = reads.append
    try:
        keys = parser.feed("ab\x1b[A\x1b[200~pasted\x1b[201~c")
        times = [getattr(found, "time", 0.0) for found in keys if hasattr(found, "key")]
    finally:
        EscapeParser.arrived = None
    assert reads == [times]
    assert len(times) == 4
