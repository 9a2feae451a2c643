"""The address that `o` opens: the first one, and nothing that is unsafe in a browser."""

from __future__ import annotations

import json

import pytest

from dibs_tui.text.addresses import address_in
from tests.tui.hostile import CASES, forbidden

pytestmark = pytest.mark.fast("dibs_tui.text")

FOUND = {
    "see https://a.example/x, then http://b.example": "https://a.example/x",
    "(https://a.example/x_(1)).": "https://a.example/x_(1)",
    "<http://a.example/?q=1&r=[2]>": "http://a.example/?q=1&r=[2]",
    "HTTP://A.example": "HTTP://A.example",
    '{"pr": 7, "url": "http://a.example/7"}': "http://a.example/7",
    '{"url": "http:\\/\\/a.example\\/7"}': "http://a.example/7",
    '["http://a.example"]': "http://a.example",
    "https://日本.example/ü": "https://日本.example/ü",
}
NONE = (
    "",
    "pass 1 of 2",
    "ftp://a.example file:///etc/passwd javascript:alert(1) mailto:a@b",
    "xhttp://a.example",
    "http://",
    "https:///path",
    "http://[::1",
    "http://a.example/\x1b]52;c;x\x07",
    "http://a.example/\u202egnp.exe",
    "http://a.example/" + "a" * 2000,
    '{"http://a.example": 1}',
    "[" * 2000,
)


@pytest.mark.parametrize("metadata", FOUND)
def test_the_first_address_is_found_without_the_text_around_it(metadata: str) -> None:
    assert address_in(metadata) == FOUND[metadata]


@pytest.mark.parametrize("metadata", NONE)
def test_only_plain_http_addresses_are_opened(metadata: str) -> None:
    assert address_in(metadata) == ""


@pytest.mark.parametrize("name", CASES)
def test_no_address_contains_hidden_characters(name: str) -> None:
    text = f"http://a.example/{CASES[name]}"[:1024]
    for metadata in (text, json.dumps({"url": text})):
        assert not forbidden(address_in(metadata))
