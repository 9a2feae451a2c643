"""Natural order, against keys of texts and numbers in turn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs_tui.text.natural import natural

_IDS = st.text("ab-.019", max_size=8)


def _split(text: str) -> tuple[str | int, ...]:
    parts = re.split("([0-9]+)", text)
    return tuple(int(part) if at % 2 else part for at, part in enumerate(parts))


@given(_IDS, _IDS)
def test_two_texts_are_ordered_by_their_words_and_the_values_of_their_numbers(
    one: str, other: str
) -> None:
    assert (natural(one) < natural(other)) == (_split(one) < _split(other))
    assert (natural(one) == natural(other)) == (_split(one) == _split(other))


@pytest.mark.parametrize("lead", ["", "a", "9-"])
def test_a_number_of_any_length_has_a_key(lead: str) -> None:
    many = lead + "9" * 10_000
    assert natural(f"{lead}10") < natural(many) < natural(f"{many}0")
    assert natural(f"{many}x") < natural(f"{many}0x")
