"""The session in a claim's metadata, and the one of an environment."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.model.metadata import value_of, values_of
from dibs.model.sessions import KEY, VARIABLES, is_session, session_of, tied

pytestmark = pytest.mark.fast("dibs.model")
OURS, CLIENTS = VARIABLES
METADATA = st.one_of(
    st.text(max_size=60),
    st.text(alphabet='ab=" ,;session', max_size=40),
    st.lists(st.sampled_from(["session=x", 'session="a b"', 'a="', "b=1", "model", ",", '"'])).map(
        " ".join
    ),
    st.dictionaries(st.sampled_from(["session", "gpu", "Ω"]), st.text(max_size=5)).map(json.dumps),
    st.integers(1, 80).map(lambda n: " ".join(f"k{i}=1" for i in range(n))),
)


@given(METADATA)
def test_tied_metadata_names_exactly_that_session_and_keeps_the_other_keys(metadata: str) -> None:
    after = tied(metadata, "new-1")
    assert value_of(after, KEY) == "new-1"
    rest = {key: value for key, value in values_of(metadata).items() if key != KEY}
    kept = dict(values_of(after))
    assert rest.items() <= kept.items() or len(rest) >= 63
    assert tied(after, "new-1") == after
    assert value_of(tied(after, ""), KEY) == ""


@given(METADATA)
def test_metadata_that_names_no_session_is_left_alone_without_one(metadata: str) -> None:
    if not value_of(metadata, KEY) and KEY not in values_of(metadata):
        assert tied(metadata, "") == metadata


@pytest.mark.parametrize(
    ("metadata", "after"),
    [
        ("", "session=s"),
        ("model x, run 42", "model x, run 42 session=s"),
        ("session=old gpu=1", "gpu=1 session=s"),
        ("gpu=1 session=old, more", "gpu=1, more session=s"),
        ('{"gpu": 1}', '{"gpu": 1, "session": "s"}'),
        ('{"session": "old"}', '{"session": "s"}'),
        ("{no object", "session=s {no object"),
    ],
)
def test_the_session_stands_behind_what_the_worker_wrote(metadata: str, after: str) -> None:
    assert tied(metadata, "s") == after


@pytest.mark.parametrize(
    ("environ", "session"),
    [
        ({}, ""),
        ({OURS: "a"}, "a"),
        ({CLIENTS: "b"}, "b"),
        ({OURS: "a", CLIENTS: ""}, "a"),
        ({OURS: "a", CLIENTS: "a"}, "a"),
        ({OURS: "a", CLIENTS: "b"}, ""),
        ({OURS: "a b"}, ""),
        ({OURS: "a\nb"}, ""),
        ({OURS: 'a"'}, ""),
        ({OURS: "x" * 129}, ""),
    ],
)
def test_two_different_sessions_or_an_invalid_one_count_as_none(
    environ: dict[str, str], session: str
) -> None:
    assert session_of(environ) == session


@pytest.mark.parametrize("text", [None, 1, "", "-x", "a;b", "é", [], "a\0"])
def test_only_plain_text_can_be_a_session(text: object) -> None:
    assert not is_session(text)
