"""Parts of the server by themselves: bodies, names, terms, kept answers, the storage thread."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dibs
from dibs.model.events import Cursor, Event
from dibs.model.names import ID_BYTES, escape
from dibs.model.outputs import check_note
from dibs.serve import request_keys, storage
from dibs.serve.board_streams import EventTail
from dibs.serve.bodies import FLAG, NAMES, NUMBER, TEXT, WHOLE, Field, read_body, read_query
from dibs.serve.call_rights import about, check_rights
from dibs.serve.lease_terms import LeaseTerms, terms_of
from dibs.serve.lock_names import check_lock_name, id_of, is_name
from dibs.serve.problems import CODES, Refusal, code_of
from dibs.serve.request_keys import RequestKeys, Sent
from dibs.serve.route_table import RouteCall, RouteTable
from dibs.serve.routes import ROUTES
from dibs.serve.storage import StorageThreads
from dibs.serve.streams import PENDING, Stream
from dibs.serve.tokens import Principal, Role
from dibs.serve.values import cursor_text, plain
from tests.patience import PATIENCE
from tests.serve.rights import is_allowed, parts_of

pytestmark = pytest.mark.fast("dibs.serve")

FIELDS = {
    "n": Field(WHOLE, "", 1, 9, default=5, code="invalid_ttl"),
    "x": Field(NUMBER, "", 0, 1e6),
    "t": Field(TEXT, "", 1, 8),
    "f": Field(FLAG, "", default=False),
    "l": Field(NAMES, "", 0, 3),
}
NAME = st.from_regex(r"[A-Za-z0-9._-]{1,60}(/[A-Za-z0-9._-]{1,60}){0,3}", fullmatch=True)


def refused(call: Callable[[], object]) -> str:
    """The code with which something is refused."""
    with pytest.raises(Refusal) as caught:
        call()
    assert caught.value.status == CODES[caught.value.code].status
    return caught.value.code


def tried(call: Callable[[], Any]) -> Any:
    """What something returns, or its refusal."""
    try:
        return call()
    except Refusal as refusal:
        return refusal


@given(st.binary(max_size=200))
def test_any_body_is_read_or_refused(data: bytes) -> None:
    found = tried(lambda: read_body(data, FIELDS))
    assert found.code in CODES if isinstance(found, Refusal) else set(found) == set(FIELDS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["n", "x", "t", "f", "l", "other"]), json_values))
def test_every_value_that_is_taken_is_of_its_kind(given: dict[str, object]) -> None:
    found = tried(lambda: read_body(json.dumps(given).encode(), FIELDS))
    if isinstance(found, Refusal):
        assert found.details.get("field") in (*given, None)
        return
    assert "other" not in given
    assert type(found["n"]) is int
    assert 1 <= found["n"] <= 9
    assert type(found["f"]) is bool
    assert found["t"] is None or 1 <= len(found["t"]) <= 8


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"n": 0}', "invalid_ttl"),
        ('{"n": 1.5}', "invalid_ttl"),
        ('{"n": true}', "invalid_ttl"),
        ('{"n": 1e400}', "invalid_ttl"),
        ('{"m": 1}', "unknown_field"),
        ('{"n": 1, "n": 1}', "invalid_json"),
        ('{"x": -Infinity}', "invalid_json"),
        ("[]", "invalid_json"),
        ('{"t": ""}', "invalid_field"),
    ],
)
def test_what_a_body_is_refused_with(text: str, code: str) -> None:
    assert refused(lambda: read_body(text.encode(), FIELDS)) == code


def test_a_query_has_the_same_values_as_a_body() -> None:
    query = "n=7&x=1.5&f=true&l=a&l=b"
    assert read_query(query, FIELDS) == {"n": 7, "x": 1.5, "f": True, "l": ["a", "b"], "t": None}
    for bad in ("n=x", "n=1&n=2", "f=yes", "q=1", "&".join(["l=a"] * 101)):
        assert refused(partial(read_query, bad, FIELDS)) == "invalid_query"


@given(NAME, NAME)
def test_a_lock_has_an_id_that_fits_and_no_other_lock_has_it(one: str, other: str) -> None:
    for name in (one, other):
        try:
            check_lock_name(name)
        except Refusal:
            return
        assert len(escape(id_of(name))) <= ID_BYTES
        assert is_name(id_of(name))
    assert (id_of(one) == id_of(other)) == (one == other)


@given(
    st.integers(0, 30),
    st.from_regex(r"session=7E[1-9]\.f[1-9]\.[a-z]{1,40}-[0-9A-F]{10}", fullmatch=True),
    st.booleans(),
    NAME,
)
def test_the_terms_of_a_lease_are_read_again_from_its_note(
    delay: int, session: str, ephemeral: bool, name: str
) -> None:
    for terms in (LeaseTerms(delay), LeaseTerms(delay, session, ephemeral)):
        assert terms_of(check_note(terms.note)) == terms
    long = LeaseTerms(delay, session, ephemeral, name)
    assert terms_of(check_note(long.note))._replace(name=name) == long


@given(st.text(max_size=250))
def test_a_note_of_someone_else_has_no_terms_that_hurt(note: str) -> None:
    assert 0 <= terms_of(note).delay <= 30


@given(st.text(max_size=60))
def test_any_path_is_found_or_refused(path: str) -> None:
    found = tried(lambda: RouteTable(ROUTES).find("GET", f"/{path}"))
    known = ("not_found", "method_not_allowed", "invalid_path")
    assert found.code in known if isinstance(found, Refusal) else found[0] in ROUTES


def test_every_error_of_a_board_has_a_code() -> None:
    from dibs.model import errors

    kinds = [errors.DibsError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    ours = [kind for kind in kinds[1:] if kind.__module__.startswith("dibs.")]  # no dashboard's
    for kind in ours:
        if kind is not errors.Stop and kind is not errors.Refused:
            assert code_of(kind.__new__(kind)) != "internal", kind


def test_results_come_in_the_order_of_the_calls_and_one_that_fails_stops_no_other() -> None:
    async def main() -> list[object]:
        thread = StorageThreads("test", object, nullcontext)
        seen: list[object] = []

        def fail() -> None:
            raise ValueError("x")

        async def run(number: int) -> None:
            try:
                seen.append(await thread.run(fail if number % 7 == 3 else lambda: number))
            except ValueError:
                seen.append("failed")

        await asyncio.gather(*(run(n) for n in range(100)))
        assert thread.stop(10)
        return seen

    found = asyncio.run(main())
    assert found == ["failed" if n % 7 == 3 else n for n in range(100)]


def test_requests_that_came_together_are_one_batch_and_no_result_is_seen_before_its_end() -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        @contextmanager
        def around() -> Iterator[None]:
            seen.append("begin")
            yield
            seen.append("end")

        thread = StorageThreads("test", object, lambda own: around())

        async def run(name: str) -> None:
            await thread.run(partial(seen.append, name))
            seen.append(f"{name} is answered")

        await thread.run(lambda: thread.own)
        await asyncio.gather(*map(run, "abc"))
        assert thread.stop(10)
        return seen

    found = asyncio.run(main())
    answers = [f"{name} is answered" for name in "abc"]
    assert found == ["begin", *"abc", "end", *answers, "begin", "end"]


def test_a_result_does_not_wait_for_many_calls_that_take_long() -> None:
    async def main() -> bool:
        thread, over = StorageThreads("test", object, nullcontext), threading.Event()
        slow = asyncio.ensure_future(thread.run(partial(time.sleep, 0.02)))
        last = asyncio.ensure_future(thread.run(partial(over.wait, PATIENCE)))
        await slow
        over.set()
        return await last

    assert asyncio.run(main())


def test_the_loop_goes_on_while_the_storage_hangs() -> None:
    async def main() -> bool:
        thread, over = StorageThreads("test", object, nullcontext), threading.Event()
        hung = asyncio.ensure_future(thread.run(over.wait))
        await asyncio.sleep(0.05)
        assert not hung.done()
        assert not thread.stop(0.05)
        over.set()
        return await hung

    assert asyncio.run(main())


def test_a_call_that_hangs_holds_up_only_what_is_about_the_same() -> None:
    async def main() -> None:
        threads, over = StorageThreads("test", object, nullcontext), threading.Event()
        seen: list[str] = []

        async def run(name: str, about: str, call: Callable[[], object] = lambda: None) -> None:
            await threads.run(call, lambda: about)
            seen.append(name)

        hung = asyncio.ensure_future(run("hung", "a", over.wait))
        same = asyncio.ensure_future(run("the same", "a"))
        for name in "bcd":
            await run(name, name)
        assert seen == ["b", "c", "d"]
        over.set()
        await asyncio.gather(hung, same)
        assert seen == ["b", "c", "d", "hung", "the same"]
        assert threads.stop(10)

    asyncio.run(main())


def test_results_before_a_call_that_hangs_are_sent_when_their_batch_has_ended() -> None:
    ends: list[str] = []

    @contextmanager
    def together(own: object) -> Iterator[None]:
        yield
        ends.append(threading.current_thread().name)

    async def main() -> None:
        threads, over = StorageThreads("test", object, together), threading.Event()
        await threads.run(lambda: threads.own)
        ends.clear()
        first = asyncio.ensure_future(threads.run(lambda: "first"))
        hung = asyncio.ensure_future(threads.run(over.wait))
        assert await first == "first"
        assert ends == ["dibs-test-2"]
        over.set()
        await hung
        assert threads.stop(10)

    asyncio.run(main())


def test_calls_that_hang_are_answered_and_what_they_return_in_the_end_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage, "_HANGS", 0.01)
    monkeypatch.setattr(storage, "_LOOK", 0.01)

    async def main() -> None:
        threads, over = StorageThreads("test", object, nullcontext), threading.Event()
        threads.seconds = 1.0
        late: asyncio.Queue[str] = asyncio.Queue()

        def hang() -> str:
            over.wait()
            return "a claim"

        calls = [threads.run(hang, str, late.put_nowait) for _ in range(20)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, Refusal) for each in found)
        codes = Counter(each.code for each in found if isinstance(each, Refusal))
        assert codes == {"uncertain": 6, "busy": 14}
        assert await threads.run(lambda: "of another", lambda: "b") == "of another"
        over.set()
        assert [await late.get() for _ in range(6)] == ["a claim"] * 6
        assert await threads.run(lambda: "again") == "again"
        assert threads.stop(10)

    asyncio.run(main())


def test_a_call_of_many_steps_may_take_longer() -> None:
    async def main() -> None:
        threads, over = StorageThreads("test", object, nullcontext), threading.Event()
        threads.seconds = 0.3
        long = asyncio.ensure_future(threads.run(over.wait, lambda: "many", seconds=PATIENCE))
        with pytest.raises(Refusal, match="unknown whether it was done"):
            await threads.run(over.wait, lambda: "one")
        over.set()
        assert await long
        assert threads.stop(10)

    asyncio.run(main())


def test_a_call_that_is_posted_once_waits_only_once_while_one_hangs() -> None:
    async def main() -> None:
        threads, over = StorageThreads("test", object, nullcontext), threading.Event()
        seen: list[str] = []
        for _ in range(5):
            threads.post(over.wait, once="look")
            await threads.run(lambda: None)
            threads.post(partial(seen.append, "look"), once="look")
            await threads.run(lambda: None)
        assert threads.waiting == 1
        over.set()
        await threads.run(lambda: None, lambda: "look")  # it is behind the one that waits
        assert threads.stop(10)
        assert seen == ["look"]

    asyncio.run(main())


def test_kept_answers_are_bounded_and_what_is_being_done_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_keys, "KEPT", 5)

    async def main() -> None:
        keys = RequestKeys()
        waits = keys.begin("t", "waits", b"1")
        for n in range(20):
            keys.find("t", f"k{n}", b"1")
            keys.begin("t", f"k{n}", b"1").set_result(Sent(200, b"x"))
        assert keys.find("t", "k0", b"1") is None
        assert keys.find("t", "waits", b"1") is waits
        with pytest.raises(Refusal, match="X-Request-Key"):
            keys.find("t", "waits", b"2")
        keys.drop("t", "waits")
        with pytest.raises(Refusal, match="again"):
            await waits
        assert keys.find("t", "waits", b"1") is None

    asyncio.run(main())


def test_a_stream_that_lags_takes_no_more_until_its_next_snapshot() -> None:
    async def main() -> None:
        stream = Stream("", lambda event: True)
        stream.snapshot(b"first")
        assert await stream.take() == b"first"
        for _ in range(20):
            stream.put(b"x" * (PENDING // 10))
        assert stream.lagging
        assert await stream.take() == b""
        stream.snapshot(b"again")
        stream.put(b"more")
        assert await stream.take() == b"againmore"

    asyncio.run(main())


class BusyLog:
    """A log in which something happens whenever it is read."""

    def __init__(self, board: dibs.Board) -> None:
        self._board = board
        self.end = board.log.end
        self._looks = 0

    def since(self, cursor: Cursor) -> tuple[list[Event], Cursor]:
        self._looks += 1
        self._board.log.note("report", f"look {self._looks}")
        return self._board.log.since(cursor)


def test_a_stream_that_begins_at_a_cursor_while_much_happens_misses_nothing(
    tmp_path: Path,
) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    sent: list[dict[str, object]] = []
    service: Any = SimpleNamespace(
        reads=SimpleNamespace(log=BusyLog(board)),
        reading=SimpleNamespace(to_loop=lambda call, *arguments: call(*arguments)),
    )
    tail = EventTail(service, lambda cursor, row: sent.append(row))
    start, _ = tail.now()
    board.log.note("report", "first")
    _, reported, rows = tail.since(cursor_text(start), lambda ident: True)
    assert len(sent) == reported, "these were sent before the stream began"
    tail.poll()
    got = [*rows, *sent[reported:]]
    events, _ = board.log.since(start)
    assert [plain(event) for event in events if plain(event) not in got] == []
    assert len(got) >= len(events) > 5


@pytest.mark.parametrize("role", Role)
def test_every_route_has_one_check_of_role_and_prefix(role: Role) -> None:
    for route in ROUTES:
        for prefix in ("", "mine-"):
            for ident in ("mine-1", "secret-1"):
                inside = not prefix or ident.startswith(prefix)
                who = Principal("olga", role, prefix, "0" * 64)
                refused: AbstractContextManager[object] = nullcontext()
                if not is_allowed(route, role, prefix, inside):
                    refused = pytest.raises(Refusal, match=r"this (needs|is for)|the token is only")
                with refused:
                    check_rights(route, who, parts_of(route.path, ident))


@given(st.text(max_size=600), st.sampled_from(["name", "id"]), st.booleans())
@example("\ud800" * 300, "name", False)
@example("a" * 256, "name", True)
def test_what_a_request_is_about_is_known_whatever_is_asked(
    text: str, field: str, in_path: bool
) -> None:
    who = Principal("olga", Role.WORKER, "", "0" * 64)
    given = {"lease" if field == "name" else field: text}
    call = RouteCall(who, None, {field: text}, {}) if in_path else RouteCall(who, None, {}, given)
    hash(about(call))


@pytest.mark.parametrize(
    "call",
    [
        RouteCall(Principal("o", Role.WORKER, "", ""), None, {"name": "gpu"}, {}),
        RouteCall(Principal("o", Role.WORKER, "", ""), None, {"id": "gpu"}, {}),
        RouteCall(Principal("o", Role.WORKER, "", ""), None, {}, {"id": "gpu"}),
        RouteCall(Principal("o", Role.WORKER, "", ""), None, {"name": "gpu.f3.a-0123456789"}, {}),
        RouteCall(Principal("o", Role.WORKER, "", ""), None, {"name": "gpu.f2.available"}, {}),
        RouteCall(
            Principal("o", Role.WORKER, "", ""),
            None,
            {},
            {"id": "x", "lease": "gpu.f3.a-0123456789"},
        ),
    ],
)
def test_requests_about_one_id_are_known_as_such(call: RouteCall) -> None:
    assert about(call) == "gpu"
