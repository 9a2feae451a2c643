"""Filters on one key of the metadata, and the keys that are found in it."""

from __future__ import annotations

import pytest

from dibs import BadName
from dibs.model.entries import Entry
from dibs.model.filters import is_term, parse
from dibs.model.metadata import KEYS, values_of

pytestmark = pytest.mark.fast("dibs.model")


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ("gpu=1 url=https://ci/7?a=b", {"gpu": "1", "url": "https://ci/7?a=b"}),
        ('model="small one", n=2;x=', {"model": "small one", "n": "2", "x": ""}),
        ('{"gpu": 1, "on": true, "who": "ada", "deep": {"a": [1]}, "0": 1}',
         {"gpu": "1", "on": "true", "who": "ada", "deep": '{"a": [1]}'}),
        ("gpu=1 gpu=2", {"gpu": "1"}),
        ("branch main", {}),
        ("{not json", {}),
        ("[1]", {}),
        ("", {}),
        ("{" * 2000, {}),
    ],
)  # fmt: skip
def test_keys_are_read_from_pairs_and_from_json(metadata: str, wanted: dict[str, str]) -> None:
    assert values_of(metadata) == wanted


def test_only_so_many_keys_are_read() -> None:
    assert len(values_of(" ".join(f"k{n}={n}" for n in range(KEYS + 5)))) == KEYS


def test_a_filter_compares_one_key() -> None:
    row = Entry("a", "task", "claimed", "a.f1", metadata="gpu=1 model=Small")
    for term in ("meta.gpu=1", "meta.model~small", "meta.none=", "!meta.gpu=2", "meta.gpu^=1"):
        assert parse((term,))(row), term
    for term in ("meta.gpu=2", "meta.model=small", "meta.none~x"):
        assert not parse((term,))(row), term
    assert is_term("meta.gpu=1")
    with pytest.raises(BadName, match=r"meta\.gpu is text"):
        parse(("meta.gpu>1",))
    with pytest.raises(BadName):
        parse(("metal.gpu=1",))
