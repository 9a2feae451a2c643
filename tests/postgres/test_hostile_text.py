"""Hostile text in every field: a database stores or refuses it exactly as a directory does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import dibs
from dibs.postgres.engine import PostgresBoard
from tests.core.tools import settle
from tests.postgres.boards import Site
from tests.postgres.losses import shape

TEXTS = {
    "a statement": "'; DROP TABLE dibs.task; --",
    "a closing quote": "x') OR 1=1; DROP SCHEMA dibs CASCADE; --",
    "placeholders": "%s %(id)s %% $1 :x {0} {{}}",
    "dollar quotes": "$$ $a$ x $a$ $$; SELECT pg_sleep(9)",
    "backslashes": "\\ \\' \\x00 \\N \\u0000 E'\\''",
    "an identifier": 'x"; DROP TABLE "dibs"."task"; --',
    "a zero byte": "a\0b",
    "bytes that are not UTF-8": "a\udc80\udcffz",
    "half a character": "a\ud800z",
    "control characters": "\x1b]0;owned\x07\x9b31m\x7f",
    "lines": "first\nsecond\r\n\tthird\u2028fourth",
    "other directions": "\u202etxt.exe\u202c \u2066x\u2069",
    "composed and not": "\u00e9 e\u0301 \ufb01",
    "far planes": "\U0001f600\U000e0001\U0010ffff\uffff",
    "spaces": "  around  ",
    "nothing": "",
    "dots": "../../etc/passwd",
    "an exact name": "build.f1.web-3-0123456789.claimed",
    "a pattern": "%_[a-z]*?",
    "a JSON text": '{"owner": "root", "pid": 1}\\',
    "a number": "0e999999",
    "long": "x" * 90,
    "too long": "x" * 20_000,
}


def stories(board: dibs.Board, text: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """One act after the other with the text in each field; a later one uses what is there."""
    data = text.encode("utf-8", "surrogatepass")

    def claim() -> dibs.Claim:
        found = board.claim("plain", owner="me", ttl=600)
        assert found is not None
        return found

    def name() -> str:
        return board.find("plain")[0].name

    def holders() -> list[dibs.Holder]:
        found = [board.holder(task) for task in board.find("plain") if task.live]
        return [holder for holder in found if holder is not None]

    yield "plain", lambda: board.add("plain", data)
    yield "id", lambda: board.add(text, data)
    yield "found", lambda: [(t.id, t.name, t.state) for t in board.find(text)]
    yield "missing", lambda: bool(board.why_missing(text))
    yield "stored payload", lambda: [board.payload(t) for t in board.find("plain")]
    yield "claim", lambda: board.claim(text, owner="me")
    yield "owner", lambda: board.claim("plain", owner=text, metadata="a=b")
    yield (
        "holder",
        lambda: [h.owner for t in board.find("plain") if t.live and (h := board.holder(t))],
    )
    yield "force-release", lambda: board.force_release(name(), text, by=text)
    yield "metadata", lambda: board.claim("plain", owner="me", metadata=text)
    yield "again", lambda: board.attach(name()).beat(metadata=text, note=text)
    yield "kept", lambda: [(e.metadata, e.note) for e in board.entries_of(board.find("plain"))]
    yield "asked for", lambda: [e.id for e in board.claims_with(text, text)]
    yield "note", lambda: board.attach(name()).note(text)
    yield "output", lambda: board.attach(name()).keep_output(65_536).keep(data, 0)
    yield "question", lambda: board.attach(name()).ask(text)
    yield "answer", lambda: board.answer(name(), text, by=text)
    yield "questions", lambda: [(q.text, q.answer) for q in board.questions(board.find("plain")[0])]
    yield "reason", lambda: claim().fail(text, retry_in=60)
    yield "park", lambda: board.park(name(), text, by=text)
    yield "requeue", lambda: board.requeue(name(), text, by=text)
    yield "prioritize", lambda: board.prioritize(name(), 3, by=text)
    yield "undo", lambda: board.undo("plain", by=text)
    yield "release", lambda: claim().release(text)
    yield "result", lambda: claim().done(data)
    yield "stored result", lambda: [board.result(t) for t in board.find("plain")]
    yield "lock", lambda: board.acquire(text, owner=text)
    yield "status", lambda: board.status(text).owner
    yield "named", lambda: board.attach(text)
    yield "acted on", lambda: board.park(text, "no")
    yield "resolve", lambda: board.resolve(text)
    yield "forget", lambda: board.forget(text)
    yield "log", lambda: board.log.note("report", text, by=text)
    yield "history", lambda: len(board.log.of(text))
    yield "pause", lambda: board.pause_claims(text, host=text, by=text)[1]
    yield "pauses", lambda: [(p.reason, p.host, p.by) for p in board.pauses()]
    yield "resume", lambda: len(board.resume_claims([text, *(p.name for p in board.pauses())]))
    yield "events", lambda: [(e.verb, e.id, e.reason, e.note) for e in sorted_log(board)]


def sorted_log(board: dibs.Board) -> list[dibs.Event]:
    return [event for event in board.log.oldest_first() if event.verb not in ("intent", "due")]


def told(board: dibs.Board, text: str) -> dict[str, object]:
    """What each act returned, or the class of its error."""
    found: dict[str, object] = {}
    for what, act in stories(board, text):
        try:
            found[what] = shape(act())
        except dibs.DibsError as error:
            found[what] = (type(error).__name__, len(str(error).splitlines()))
    return found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_database_treats_a_text_as_a_directory_does(
    site: Site, tmp_path: Path, text: str
) -> None:
    settle(tmp_path / "board")
    before = tables(site)
    assert told(site.board, text) == told(dibs.open(tmp_path / "board"), text)
    assert tables(site) == before
    assert site.contradictions() == []


def tables(site: Site) -> list[object]:
    """Everything that is defined in the database."""
    return site.sql(
        "SELECT relname, relkind::text FROM pg_class"
        " WHERE relnamespace = 'dibs'::regnamespace ORDER BY relname"
    )


def test_payloads_and_results_keep_every_byte(site: Site) -> None:
    board, data = site.board, bytes(range(256)) * 300
    board.add("build", data)
    claim = board.claim("build")
    assert claim is not None
    assert claim.payload() == data
    with suppress(dibs.BadName):
        claim.keep_output(65_536).keep(data[:60_000], 0)
    task = claim.done(data[:60_000])
    assert board.result(task) == data[:60_000]


def test_a_text_that_no_message_to_the_server_can_hold_is_refused(site: Site) -> None:
    board = site.board
    assert isinstance(board, PostgresBoard)
    with pytest.raises(dibs.BadName, match="unpaired surrogate"):
        board._session.rows("SELECT %s::text", ("\ud800",))
    board.add("a")
