"""Payloads prepared for the screen: recognised, harmless and of limited size."""

from __future__ import annotations

import json

import pytest

from dibs_tui.model import payload
from dibs_tui.model.payload import PART, Payload
from dibs_tui.model.rows import Row, all_wrapped, plain, wrapped
from dibs_tui.text.safe import width
from tests.tui.hostile import CASES, forbidden


def read(data: bytes) -> Payload:
    """Read a payload as the dashboard does: its beginning and its full size."""
    return payload.read(data[:PART], len(data))


def text_of(lines: tuple[Row, ...] | list[Row]) -> str:
    return "\n".join(plain(line) for line in lines)


def look_of(found: Payload, text: str) -> str:
    """The style of a piece with exactly that text."""
    return next(look for line in found.lines for piece, look in line if piece == text)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "empty"),
        (b"resize the pictures", "text"),
        (b"[note] this is a sentence", "text"),
        (b"#!/bin/sh\n# a comment\nrm x\n", "text"),
        (b'"a text alone"', "text"),
        (b'{"a": 1}', "JSON"),
        (b'[{"a": 1}]\n', "JSON"),
        (b'{"a": 1}\n{"a": 2}\n', "JSON"),
        (b'{"a": 1, oops', "text"),
        (b'{"a": "' + b"x" * PART + b'"}', "JSON"),
        (b"# Title\n\nwords", "Markdown"),
        (b"Do:\n\n- this\n- that\n", "Markdown"),
        (b"```\ncode\n```\n", "Markdown"),
        ("über ä日本".encode(), "text"),
        (b"\xff\xfe\x00", "binary"),
        (b"text\0text", "binary"),
        ("ü".encode("latin-1"), "binary"),
    ],
)
def test_the_kind_of_a_payload_is_recognised(data: bytes, kind: str) -> None:
    assert read(data).kind == kind


def test_one_line_of_json_is_pretty_printed() -> None:
    assert text_of(read(b'{"a":[1,2]}').lines) == '{\n  "a": [\n    1,\n    2\n  ]\n}'


@pytest.mark.parametrize("data", ['{"a":1,"a":2}', '{"a":1.50}', '{"a" :1}', '{"a":1E5}'])
def test_json_that_pretty_printing_would_change_is_left_unchanged(data: str) -> None:
    assert text_of(read(data.encode()).lines) == data


def test_deep_nesting_is_not_pretty_printed_without_limit() -> None:
    data = b"[" * 900 + b"0," * 20_000 + b"0" + b"]" * 900
    assert len(text_of(read(data).lines)) < 5 * PART


def test_keys_values_and_punctuation_of_json_look_different() -> None:
    found = read(b'{"a": [true, "b: c", -1.5e3]}')
    assert look_of(found, '"a"') == "key"
    assert look_of(found, "true") == look_of(found, "-1.5e3") == "strong"
    assert look_of(found, '"b: c"') == "text"


def test_headings_items_links_and_code_of_markdown_look_different() -> None:
    found = read(b"# Top\n\n- see [it](http://x) or `code`\n\n```\n# no heading\n```\n")
    assert look_of(found, "# Top") == "heading"
    assert look_of(found, "-") == look_of(found, "`code`") == "key"
    assert look_of(found, "[it](http://x)") == look_of(found, "# no heading") == "key"


@pytest.mark.parametrize(
    "data",
    [
        b'{"' + b'\\"' * 32_000,
        b'{"a"' + b'"\\' * 32_000,
        b'{"":' + b'"' * 65_000,
        b'{"a":' + b"9" * 65_000 + b"}",
        b"[" * PART,
        b"# a\n" + b"[" * 65_000,
        b"# a\n" + b"[](" * 20_000,
        b"# a\n" + b"**a*" * 16_000,
        b"# a\n" + b"`" * 65_000,
        b"# a\n" + b"> " * 32_000,
        b"\n" * PART,
    ],
)
def test_text_made_to_be_slow_is_fast(data: bytes) -> None:
    """Each of these takes minutes if a pattern is tried again from every position."""
    for _ in range(20):
        all_wrapped(read(data).lines, 30)


@pytest.mark.parametrize("name", CASES)
def test_no_hostile_text_gets_through_and_no_line_is_too_wide(name: str) -> None:
    text = CASES[name]
    for frame in ("{}", '{{"a": "{}"}}', "# {0}\n- {0}\n- `{0}` **{0}**"):
        found = read(frame.format(text).encode("utf-8", "surrogatepass"))
        lines = all_wrapped(found.lines, 37) or list(payload.dump(found.data, 37))
        assert not forbidden(text_of(lines), "\n")
        assert max(width(plain(line)) for line in lines) <= 38  # a space may end a line


@pytest.mark.parametrize("name", CASES)
def test_wrapping_loses_nothing(name: str) -> None:
    for line in read(CASES[name].encode("utf-8", "replace")).lines:
        assert "".join(map(plain, wrapped(line, 20))) == plain(line)


def test_continuation_lines_are_indented_and_words_are_not_split() -> None:
    line: Row = (("owner     ", "muted"), ("a worker with words", "text"))
    assert [plain(part) for part in wrapped(line, 20, 10)] == [
        "owner     a worker ",
        "          with words",
    ]


def test_a_large_payload_is_shown_in_part_and_says_so() -> None:
    found = read(b"x" * 1_000_000)
    assert found.cut == "only the first 65.5 kB of 1.0 MB are shown"
    assert found.summary == "1.0 MB, text"
    assert sum(len(plain(line)) for line in found.lines) == PART


def test_a_character_cut_at_the_end_does_not_make_text_binary() -> None:
    found = read("é".encode() * PART)
    assert found.kind == "text"
    assert payload.read("aé".encode()[:2], 100).kind == "text"
    assert payload.read("aé".encode()[:2], 2).kind == "binary"


def test_bytes_are_dumped_with_offset_hex_and_printable_characters() -> None:
    lines = [plain(line) for line in payload.dump(b"abc\x1b[2Jdef\xff0123456789", 80)]
    assert lines == [
        "000000  61 62 63 1b 5b 32 4a 64 65 66 ff 30 31 32 33 34  abc.[2Jdef.01234",
        "000010  35 36 37 38 39                                   56789",
    ]


@pytest.mark.parametrize("cells", [17, 30, 45, 73, 200])
def test_a_dump_fits_its_page(cells: int) -> None:
    lines = list(payload.dump(bytes(range(256)), cells))
    assert max(len(plain(line)) for line in lines) <= cells
    dumped = "".join(line[1][0].replace(" ", "") for line in lines)
    assert bytes.fromhex(dumped) == bytes(range(256))


def test_json_of_a_real_producer_is_shown_with_nothing_lost() -> None:
    value = {"path": "a\\b", "text": 'say "hi"\n', "n": [1, 2.5, None, True], "ü": "日本"}
    for ascii in (True, False):
        data = json.dumps(value, ensure_ascii=ascii).encode()
        assert json.loads(text_of(read(data).lines)) == value
