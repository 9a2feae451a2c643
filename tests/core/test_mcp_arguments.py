"""What `dibs mcp` accepts from a client, and what it lets out of a board; no SDK is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.cli.grammar import VERBS
from dibs.mcp import answers
from dibs.mcp.arguments import ARGUMENTS, PAYLOAD_CHARS, checked, names, needed, schema_of
from dibs.mcp.tools import TOOLS, Tool
from dibs.model.errors import BadName
from tests.core.hostile import KINDS, plant

CORE = Path(dibs.__file__).parents[1]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.fast("dibs.mcp")
def test_there_are_eight_tools_and_none_is_an_operators() -> None:
    assert [*TOOLS] == ["claim", "beat", "done", "give_back", "acquire", "release", "look", "add"]
    operators = {word for word, verb in VERBS.items() if verb.group in ("act", "care")}
    assert not operators & set(TOOLS)


@pytest.mark.fast("dibs.mcp")
@pytest.mark.parametrize("tool", TOOLS)
def test_a_schema_has_every_argument_and_those_that_are_needed(tool: str) -> None:
    takes = TOOLS[tool].takes
    schema = schema_of(takes)
    assert list(schema["properties"]) == names(takes)  # type: ignore[call-overload]
    assert schema.get("required", []) == needed(takes)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("claim", {"zz": 1}, "claim has no argument 'zz': it takes id, owner"),
        ("claim", {"id": 7}, "claim: id must be a text, got 7"),
        ("claim", {"ttl": "60"}, "claim: ttl must be a number from 1 to 86400, got '60'"),
        ("claim", {"ttl": True}, "ttl must be a number"),
        ("claim", {"ttl": 0.5}, "ttl must be a number from 1"),
        ("claim", {"ttl": float("nan")}, "ttl must be a number"),
        ("claim", {"ttl": 10**400}, "ttl must be a number"),
        ("claim", {"wait": float("inf")}, "wait must be a number from 0 to 50, got inf"),
        ("claim", {"wait": 51}, "wait must be a number from 0 to 50, got 51"),
        ("add", {"id": "a", "priority": 2.5}, "priority must be a whole number, got 2.5"),
        ("add", {"id": "a", "priority": -1}, "priority must be a whole number from 0 to 9"),
        ("add", {}, "add needs id"),
        ("add", {"id": None}, "add needs id"),
        ("give_back", {"claim": "x", "how": "park"}, "must be one of retry, untouched, ask"),
        ("add", {"id": "a", "payload": "x" * (PAYLOAD_CHARS + 1)}, "at most 1,048,576 characters"),
    ],
)
def test_an_invalid_argument_is_named_with_what_it_has_to_be(
    tool: str, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(BadName) as refused:
        checked(tool, TOOLS[tool].takes, arguments)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.fast("dibs.mcp")
def test_a_whole_number_may_be_written_with_a_point_and_null_is_not_given() -> None:
    found = checked("add", TOOLS["add"].takes, {"id": "a", "priority": 7.0, "in": None})
    assert found == {"id": "a", "priority": 7}
    assert type(found["priority"]) is int


@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(st.sampled_from(sorted(ARGUMENTS)), JSON))
def test_no_input_of_a_client_is_more_than_a_refusal(
    tool: str, arguments: dict[str, object]
) -> None:
    refusal = ""
    found = {}
    try:
        found = checked(tool, TOOLS[tool].takes, arguments)
    except BadName as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert found.keys() <= set(names(TOOLS[tool].takes))


@given(JSON)
def test_every_answer_can_be_sent(value: object) -> None:
    safe = answers.safe({"a": value})
    json.dumps(safe, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.fast("dibs.mcp")
def test_a_long_payload_is_cut_between_two_characters_and_says_so() -> None:
    whole = "ä" * answers.PAYLOAD_BYTES
    found = answers.content("payload", f"x{whole}".encode())
    assert found["truncated"]
    assert "binary" not in found
    assert found["payload"] == "x" + whole[: answers.PAYLOAD_BYTES // 2 - 1]


@pytest.mark.fast("dibs.mcp")
def test_a_payload_that_is_no_text_says_so() -> None:
    assert answers.content("payload", b"\xff\x00") == {"payload": "�\x00", "binary": True}
    assert answers.content("payload", b"") == {"payload": ""}
    assert answers.content("payload", b"a\xc3")["binary"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["payload", "record", "journal", "stranger"])
def test_a_look_at_a_hostile_board_is_an_answer_or_a_refusal(
    place: str, kind: str, scratch: Path
) -> None:
    (scratch / "outside").mkdir()
    (scratch / "outside/canary").write_text("x")
    scratch /= "board"
    board = dibs.open(scratch, create=True)
    for ident in ("a", "b", "c"):
        board.add(ident, b"payload")
    claim = board.claim("a")
    assert claim is not None
    claim.note("half")
    target = {
        "payload": [scratch / "c.available"],
        "record": [path for path in (scratch / ".dibs").rglob(f"{claim.name}*") if path.is_file()],
        "journal": [path for path in (scratch / ".dibs/journal").rglob("*") if path.is_file()],
        "stranger": [
            scratch / "evil\x1b[2J\n.available",
            scratch / "x\udcff.f1.me-0A1B2C3D4E.claimed",
        ],
    }[place]
    assert target, [*(scratch / ".dibs").rglob("*")]
    for path in target:
        plant(path, kind)
    look = TOOLS["look"]
    assert isinstance(look, Tool)
    for what in ({}, {"id": "a"}, {"id": "c"}, {"id": "none"}, {"filter": "state=available"}):
        found = {}
        with suppress(dibs.DibsError):
            found = answers.safe(look.run(dibs.open(scratch), what))
        assert "root:" not in json.dumps(found)
        assert json.dumps(found).isprintable()


def test_without_the_sdk_one_line_says_what_to_install(board_dir: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "dibs", "-d", board_dir, "mcp"],
        env=os.environ | {"PYTHONPATH": str(CORE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("dibs: `dibs mcp` needs mcp, which is not installed: run `")
    assert done.stderr.endswith(f" install '{CORE.parent}[mcp]'`\n")
    assert not list(board_dir.iterdir())


def test_the_sdk_is_named_if_it_is_too_old(board_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp/__init__.py").touch()
    for package in ("anyio", "mcp_types"):
        (tmp_path / f"{package}.py").touch()
    done = subprocess.run(
        [sys.executable, "-S", "-m", "dibs", "--json", "-d", board_dir, "mcp"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{CORE}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    found = json.loads(done.stdout)
    assert found["status"] == "not-installed"
    assert "too old" in found["error"]


def test_the_result_of_a_task_may_be_as_long_as_its_argument_says() -> None:
    result = ARGUMENTS["result"]
    assert result.text == f"up to {result.chars:,} characters"
    assert len(result.read("result", "x" * result.chars)) == result.chars
    with pytest.raises(BadName, match=f"at most {result.chars:,} characters"):
        result.read("result", "x" * (result.chars + 1))
