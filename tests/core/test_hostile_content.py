"""Well-formed files with hostile content: records, lives, witnesses, journals, settings, links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.files.facts import LOCK_BYTES
from dibs.model.records import Record, ShellSnapshot, decode, encode
from tests.core.hostile import AttackedBoard
from tests.core.tools import Killed, Place

NONCE = "0123456789"
WRONG = ["null", "true", "-1", "0", "1e999", "-1e999", "NaN", '"x"', "[]", "{}", "9" * 400]
FIELDS = ["v", "owner", "host", "ttl", "at", "boot", "pidns", "pid", "start", "sight", "metadata"]


def document(field: str, value: str) -> bytes:
    """A record in which one field is of the wrong type or size."""
    sound = {
        **{"v": "1", "owner": '"me"', "host": '"h"', "ttl": "120", "at": "1.5"},
        **{"boot": '"b"', "pidns": '"p"', "pid": "1", "start": "1", "metadata": '"m"'},
    }
    fields = sound | {field: value}
    return ("{" + ", ".join(f'"{key}": {value}' for key, value in fields.items()) + "}\n").encode()


def sane(record: Record) -> bool:
    """Whether a parsed record holds only valid values."""
    good = record.ttl is None or 1 <= record.ttl <= 86_400
    good = good and 0 <= record.claimed_at <= 2**53
    return good and len(record.owner) <= 256 and len(record.metadata) <= 1024


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_the_wrong_type_is_dropped_and_named(field: str, value: str) -> None:
    record = decode(document(field, value))
    assert sane(record)
    if field == "ttl" and value != "null":
        assert "ttl" in record.flaw
    if field != "owner":
        assert record.owner == "me"


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_a_record_or_its_flaw(data: bytes) -> None:
    record = decode(data)
    assert sane(record)
    assert record.flaw or data.strip().startswith(b"{")


@given(
    st.dictionaries(
        st.sampled_from(FIELDS),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ),
    )
)
def test_arbitrary_fields_make_a_sane_record(fields: dict[str, object]) -> None:
    assert sane(decode(json.dumps(fields).encode()))


@given(
    st.builds(
        Record,
        owner=st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
        ttl=st.floats(1, 86_400),
        claimed_at=st.integers(0, 2**40).map(float),
        process=st.none(),
        shell_snapshot=st.none(),
        flaw=st.just(""),
        metadata=st.text(st.characters(codec="utf-8"), max_size=40),
    )
)
def test_a_sound_record_is_read_as_it_was_written(record: Record) -> None:
    assert decode(encode(record)) == record


@pytest.mark.parametrize(
    "data", [b"[" * 5000, b'{"a":' * 1500, b"\xff\xfe", b"\0" * 100, b"{}" * 2]
)
def test_deeply_nested_json_is_no_record(data: bytes) -> None:
    assert decode(data).flaw


@pytest.mark.parametrize("lock", ["\x01" * LOCK_BYTES, "\ufffd" * LOCK_BYTES, '"' * LOCK_BYTES])
def test_the_record_of_a_takeover_is_never_too_large_to_be_read_again(lock: str) -> None:
    record = Record(
        owner="dibs",
        shell_snapshot=ShellSnapshot("x" * 120 + ".claimed", 2**63, 2**63, lock, 2**63),
    )
    read = decode(encode(record))
    assert read.flaw == ""
    assert read.shell_snapshot is not None


@pytest.mark.parametrize("lock", [b"\x01" * 4096, b"\xff" * 4096, b"x" * 10_000])
def test_a_takeover_beside_a_hostile_lock_is_finished_by_the_next_janitor(
    place: Place, lock: bytes
) -> None:
    def die(path: str) -> None:
        if path.startswith("x.f0.dibs-"):
            raise Killed

    (place.path / "x.claimed").write_bytes(b"p")
    (place.path / "x.lock").write_bytes(lock)
    holder = place.board.holder(place.board.find("x")[0])
    assert holder is not None
    place.board.reap()
    board, port = place.another()
    port.before["rename"] = die
    with pytest.raises(Killed):
        board.force_release(holder.act_name, "why")
    place.world.advance(121)
    place.board.reap()
    assert place.names() == ["x.available"]


ESCAPES = [
    *("done/../../outside/evil.claimed", "../outside/evil.claimed", "/tmp/evil.claimed"),
    *("x\0.claimed", "done/x.claimed", ".dibs/records/x.claimed", ".dibs/../evil.claimed"),
    *("", "x", "x.available", "\ud800.claimed", "a" * 300 + ".claimed", "wait.available"),
]


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("lock", [None, "1700000000 web-3\n"])
def test_a_takeover_whose_record_names_another_directory_stays_on_the_board(
    scratch: Path, name: str, lock: str | None
) -> None:
    victim = AttackedBoard(scratch)
    stem = f"x.f0.dibs-{NONCE}"
    taken = victim.path / f"{stem}.claimed"
    taken.write_bytes(b"payload of x")
    s, beaten = taken.stat(), (victim.outside / "evil.lock").stat().st_mtime_ns
    shifted = victim.world.shifted
    fields = {"sight": [name, s.st_ino, shifted(s.st_mtime_ns), lock, shifted(beaten)], "ttl": 1}
    (victim.path / ".dibs/records" / stem).write_text(json.dumps(fields))
    assert victim.problems() == []


@pytest.mark.parametrize(
    "content",
    [
        b'{"samples": [[1e999, 1]], "looks": {}}',
        b'{"samples": [[NaN, 1]], "looks": {}}',
        b'{"samples": [[1, -1e999]], "looks": {}}',
        b'{"samples": [["1", "2"]], "looks": {"x": ["3", "4"]}}',
        b'{"samples": [[1, -%s]], "looks": {}}' % (b"9" * 400),
        b'{"samples": [[%s, 1]], "looks": {}}' % (b"9" * 400),
        b'{"samples": [], "looks": {"%%s": [%%d, -%s]}}' % (b"9" * 400),
        b'{"samples": [], "looks": {"%s": [%d, 1e999]}}',
        b'{"samples": [], "looks": {"%s": [%d, null]}}',
        b'{"samples": {"a": 1}, "looks": []}',
        b'{"samples": [[1, 2, 3]], "looks": {}}',
        b'{"samples": [[1, 2]]}',
        b"[1, 2]",
        b"null",
    ],
)
def test_a_hostile_witness_only_delays(scratch: Path, content: bytes) -> None:
    victim = AttackedBoard(scratch)
    task = next(t for t in victim.opened().find("mine"))
    victim.world.step(500)
    holder = victim.opened().holder(task)
    assert holder is not None
    if b"%s" in content:
        content = content % (task.stem.encode(), holder.beat)
    victim.file("witness").write_bytes(content)
    assert victim.problems() == []


def add_invalid_journal(victim: AttackedBoard, at: str) -> None:
    """Add a journal with this time in it, and with text that no terminal should get."""
    rest = '"verb": "a\\u001b[2Jb", "id": "mine", "src": "\\ud800", "by": "x\\n"'
    (victim.path / ".dibs/journal/other.jsonl").write_text(f'{{"at": {at}, {rest}}}\n' * 2)


TIMES = ["1e999", "-1e999", "NaN", "1e300", "-1e300", "9" * 400, "-" + "9" * 400, "0"]


@pytest.mark.parametrize("at", TIMES)
def test_a_journal_with_a_hostile_time_is_still_read(scratch: Path, at: str) -> None:
    victim = AttackedBoard(scratch)
    add_invalid_journal(victim, at)
    assert victim.problems() == []


@pytest.mark.parametrize("at", TIMES)
def test_a_journal_with_a_hostile_time_is_still_shown(scratch: Path, at: str) -> None:
    victim = AttackedBoard(scratch)
    add_invalid_journal(victim, at)
    assert victim.problems(commands=True) == []


@pytest.mark.parametrize(
    "life",
    [
        b"",
        b"0123456789",
        b"0123456789 f0",
        b"0123456789 f01\n",
        b"x f1\n",
        b"\xff" * 256,
        b"0" * 9999,
    ],
)
@pytest.mark.parametrize("ident", ["wait", "gone"])
def test_an_invalid_life_never_allows_a_second_one(scratch: Path, ident: str, life: bytes) -> None:
    victim = AttackedBoard(scratch)
    (victim.path / f".dibs/known/{ident}.0").write_bytes(life)
    with pytest.raises(dibs.Exists):
        victim.opened().add(ident)
    assert victim.problems() == []


@pytest.mark.parametrize(
    "fence", [b"", b"-1", b"1e3", b"x", b"1" * 18, b"1" * 64, b"\xff", b" 7 \n"]
)
def test_an_invalid_end_of_a_life_never_repeats_a_fence(scratch: Path, fence: bytes) -> None:
    victim = AttackedBoard(scratch)
    (victim.path / ".dibs/gone/gone.0").write_bytes(fence)
    try:
        task = victim.opened().add("gone")
    except dibs.DibsError:
        pass
    else:
        assert task.fence == 8
    assert victim.problems() == []
