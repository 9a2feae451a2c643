"""Text from the directory reaches the screen as one harmless line of known width."""

from __future__ import annotations

import sys
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dibs.model.safe_text import shown
from dibs_tui.text.safe import clean, clean_lines, fit, width
from tests.tui.hostile import CASES, forbidden

pytestmark = pytest.mark.fast("dibs_tui.text")

Align = Literal["left", "right"]
Cut = Literal["end", "middle"]
ALIGNS: list[Align] = ["left", "right"]
CUTS: list[Cut] = ["end", "middle"]
NASTY = sorted({char for text in CASES.values() for char in text})
TEXTS = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from(NASTY)))
SHORT = {name: text[:5000] for name, text in CASES.items()}
cases = pytest.mark.parametrize("text", SHORT.values(), ids=SHORT)


@given(TEXTS, st.integers(1, 60))
def test_no_forbidden_character_is_let_through(text: str, limit: int) -> None:
    found = clean(text, limit)
    assert not forbidden(found)
    assert len(found) <= limit


@given(TEXTS, st.integers(1, 60))
def test_clean_text_is_unchanged(text: str, limit: int) -> None:
    once = clean(text, limit)
    assert clean(once, limit) == once


@cases
def test_every_hostile_case_becomes_harmless(text: str) -> None:
    assert not forbidden(clean(text))
    assert not forbidden(clean_lines(text), but="\n")


def test_only_harmless_characters_survive_and_only_marks_have_no_width() -> None:
    everything = "".join(f"a{chr(code)}" for code in range(sys.maxunicode + 1))
    kept = set(clean(everything, limit=len(everything)))
    assert len(kept) > 100_000
    assert not forbidden("".join(kept))
    for char in kept:
        assert (cell_len(char) == 0) == (unicodedata.category(char)[0] == "M"), ascii(char)


def test_escapes_are_spelled_as_on_the_command_line() -> None:
    for text in ("\x1b[31m\x00\x7f\x9b", "a\u202eb\u2028\ud800\ue000\U000e0041", "a\tb\nc\xa0d"):
        assert clean(text) == shown(text)
    assert clean("\u2764\ufe0f \U0001f1e9") == "\u2764\\ufe0f \\U0001f1e9"


@pytest.mark.parametrize("text", ["plain", "日本語", "né", "e\u0301\u0302x", "שלום", "นี่", "👍"])
def test_harmless_text_in_any_script_is_unchanged(text: str) -> None:
    assert clean(text) == text


def test_a_character_has_at_most_two_marks_and_a_mark_has_a_base() -> None:
    assert clean("Z" + "\u0301" * 50 + "a") == "Z\u0301\u0301a"
    assert clean("\u0301a") == "\u25cc\u0301a"


def test_a_long_text_is_cut_with_a_sign() -> None:
    assert clean("a" * 5000) == "a" * 4095 + "…"
    assert clean("a" * 4096) == "a" * 4096
    assert clean("\x1b" * 10, 12) == "\\x1b\\x1b\\x1…"


def test_lines_stay_lines_and_tabs_become_spaces() -> None:
    assert clean_lines("one\r\n\ttwo\n\x1b[2Jthree\rfour\n") == (
        "one\n        two\n\\x1b[2Jthree\\x0dfour\n"
    )


def test_a_cut_line_says_how_much_is_missing() -> None:
    assert clean_lines("ab\n" + "x" * 5000, 96) == "ab\n" + "x" * 96 + "… 4,904 more characters"
    assert clean_lines("日" * 1100, 100) == "日" * 100 + "… 1,000 more characters"


@given(TEXTS)
def test_widths_are_those_of_textual(text: str) -> None:
    found = clean(text)
    assert width(found) == cell_len(found)


@given(TEXTS, st.integers(0, 40), st.sampled_from(ALIGNS), st.sampled_from(CUTS))
def test_a_fitted_text_takes_exactly_its_cells(
    text: str, cells: int, align: Align, cut: Cut
) -> None:
    found = fit(clean(text), cells, align=align, cut=cut)
    assert width(found) == cells
    assert not forbidden(found)


@given(TEXTS, st.integers(0, 40))
def test_text_that_fits_is_kept_and_padded(text: str, more: int) -> None:
    text = clean(text)
    cells = width(text) + more
    if cells:
        assert fit(text, cells) == text + " " * more
        assert fit(text, cells, align="right") == " " * more + text


@pytest.mark.parametrize(
    ("text", "cells", "cut", "wanted"),
    [
        ("abcdefghij", 5, "end", "abcd…"),
        ("abcdefghij", 5, "middle", "ab…ij"),
        ("abcdefghij", 6, "middle", "abc…ij"),
        ("abc", 1, "end", "…"),
        ("日本語日本語", 6, "end", "日本… "),
        ("日本語日本語", 7, "middle", "日…語  "),
        ("e\u0301e\u0301e\u0301e\u0301", 3, "middle", "e\u0301…e\u0301"),
        ("abc", 0, "end", ""),
    ],
)
def test_a_cut_never_splits_a_character(text: str, cells: int, cut: Cut, wanted: str) -> None:
    assert fit(text, cells, cut=cut) == wanted


def test_a_terminal_gives_every_case_its_computed_width() -> None:
    pyte = pytest.importorskip("pyte")
    for name, text in CASES.items():
        screen = pyte.Screen(1000, 2)
        stream = pyte.Stream(screen)
        for char in fit(clean(text, 400), 700, cut="middle") + "|":
            stream.feed(
                char
            )  # one by one, because pyte drops what follows a mark that it cannot compose
        assert (screen.cursor.y, screen.cursor.x) == (0, 701), name
