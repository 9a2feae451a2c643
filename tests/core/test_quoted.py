"""Errors show a text as its user reads it, and never a character that a terminal obeys or hides."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import dibs
from dibs.model.errors import short
from dibs.model.safe_text import command

pytestmark = pytest.mark.fast("dibs.model")

READ = ("büro", "отчёт-7", "日本語", "naïve café", "שלום", "🦊")
HIDDEN = ("a\x1b[2Jb", "a\u202eb", "a\u2066b", "a\nb", "a\u200bb", "\x9b2J", "a\u2028b")
"""Controls, bidi overrides, lines, and what is not visible."""


class Odd:
    """A value whose own form would change a terminal."""

    def __repr__(self) -> str:
        return "odd \u202e\n\x1b[2J value"


@pytest.mark.parametrize("ident", READ)
def test_an_id_of_any_language_is_shown_as_it_is(tmp_path: Path, ident: str) -> None:
    board = dibs.open(tmp_path, create=True)
    task = board.add(ident)
    for attempt in (
        lambda: board.add(ident),
        lambda: board.claim(f"no {ident}"),
        lambda: board.park(ident, "why"),
    ):
        with pytest.raises(dibs.DibsError) as caught:
            attempt()
        assert ident in str(caught.value)
    board.claim(ident, owner=ident)
    with pytest.raises(dibs.Held, match=f"is held by '{ident}'"):
        board.claim(ident)
    assert task.id == ident


@pytest.mark.parametrize("text", HIDDEN)
def test_what_a_terminal_obeys_or_hides_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    board = dibs.open("board", create=True)
    for attempt in (
        lambda: dibs.open(text),
        lambda: dibs.open(f"{tmp_path}/{text}"),
        lambda: board.claim(text),
        lambda: board.claim(owner=text),
        lambda: board.park(text, "why"),
    ):
        with pytest.raises((dibs.DibsError, TypeError)) as caught:
            attempt()
        assert str(caught.value).isprintable()


def test_half_of_a_character_is_escaped(tmp_path: Path) -> None:
    board = dibs.open(tmp_path, create=True)
    with pytest.raises(dibs.DibsError) as caught:
        board.claim("caf\udce9")
    assert "'caf\\udce9'" in str(caught.value)


def test_a_value_is_quoted_in_one_line() -> None:
    assert short(Odd()) == "odd \\u202e\\x0a\\x1b[2J value"
    assert short("日本") == "'日本'"
    assert str(dibs.StorageError("a\u202eb\n")) == "a\\u202eb\\x0a"


@pytest.mark.parametrize("name", ["a b;touch x", "$(reboot)", "it's", "a`b", "-", "--"])
def test_the_words_of_a_command_are_quoted_for_the_shell(name: str) -> None:
    line = command("undo --all", name, "x")
    assert [word for word in shlex.split(line) if word != "--" or name == "--"][-2:] == [name, "x"]


def test_a_name_that_begins_with_a_dash_is_no_option_of_a_command(tmp_path: Path) -> None:
    board = dibs.open(tmp_path, create=True)
    task = board.add("-rf", start_in=1000)
    with pytest.raises(dibs.NotDue, match=f"`dibs requeue -- {task.name}`"):
        board.claim("-rf")


def test_the_id_in_a_command_is_the_one_that_was_given(tmp_path: Path) -> None:
    board = dibs.open(tmp_path, create=True)
    board.add("two words")
    with pytest.raises(dibs.BadName, match="see `dibs show 'two words'`"):
        board.acquire("two words")
    claim = board.claim("two words")
    assert claim is not None
    claim.done()
    board.purge(0)
    with pytest.raises(dibs.Exists, match="free it with `dibs forget 'two words'`"):
        board.add("two words")
