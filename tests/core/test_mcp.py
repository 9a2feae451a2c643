"""`dibs mcp` as agents use it: the official client, real processes, real pipes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.mcp.tools import Taking
from tests.patience import PATIENCE

try:
    import anyio
    from mcp import Client, MCPError

    from dibs.mcp.taking import taken
    from tests.core import mcp_client
    from tests.core.mcp_client import parameters
except ModuleNotFoundError:
    pytest.skip("MCP WAS NOT TRIED: the package mcp is not installed", allow_module_level=True)

TOOL_LIST_BYTES = 3000
SESSIONS = 8
Answer = dict[str, Any]


class Session:
    """One agent with its own server."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: object) -> Answer:
        """The fields of an answer, which are those of its text."""
        found = await self.client.call_tool(tool, arguments)
        fields = found.structured_content
        assert isinstance(fields, dict)
        (block,) = found.content
        assert block.type == "text"
        assert block.text.isascii()
        assert json.loads(block.text) == fields
        assert fields["board"]
        return fields | {"failed": found.is_error}


def session(board: Path, work: Callable[[Session], Awaitable[object]], *options: str) -> None:
    """Do this with one server on a board."""

    async def main() -> None:
        async with Client(parameters(str(board), *options)) as client:
            async with asyncio.timeout(PATIENCE):
                await work(Session(client))

    asyncio.run(main())


@pytest.fixture
def board(scratch: Path) -> dibs.Board:
    return dibs.open(scratch, create=True)


def test_a_task_goes_from_add_to_done(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        assert (await me.call("add", id="a", payload="what\nto do", priority=9))["failed"] is False
        claim = await me.call("claim", ttl=300, meta="model x")
        assert claim["status"] == "claimed"
        assert claim["payload"] == "what\nto do"
        assert claim["beat_within"] == 100
        assert claim["claim"].startswith("a.f1p9.me-")
        assert claim["board"] == str(scratch)
        assert (await me.call("beat", claim=claim["claim"], note="half"))["status"] == "renewed"
        (row,) = (await me.call("look"))["rows"]
        assert (row["note"], row["metadata"], row["state"]) == ("half", "model x", "claimed")
        done = await me.call("done", claim=claim["claim"], result="42")
        assert done["state"] == "done"
        named, shown = [await me.call("look", id=each) for each in (done["name"], "a")]
        for each in (named, shown):
            del each["rows"][0]["age"]  # the second look is later
        assert named == shown
        assert shown["result"] == "42"
        assert [event["verb"] for event in shown["log"]] == ["add", "claim", "done"]

    session(scratch, work, "--owner", "me")


def test_a_claim_is_given_back_in_three_ways(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        for how, text, state in (
            ("retry", "no route", "later"),
            ("untouched", "", "available"),
            ("ask", "which one?", "asked"),
        ):
            await me.call("add", id=how)
            claim = (await me.call("claim", id=how))["claim"]
            back = await me.call("give_back", claim=claim, how=how, text=text)
            assert back["state"] == state, back
        claim = (await me.call("claim", id="untouched"))["claim"]
        assert "needs text" in (await me.call("give_back", claim=claim, how="retry"))["error"]
        (row,) = (await me.call("look", filter="state=asked"))["rows"]
        assert row["question"] == "which one?"

    session(scratch, work)


def test_a_lock_is_acquired_renewed_and_freed(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        lock = (await me.call("acquire", name="deploy/production", owner="me", ttl=60))["claim"]
        other = await me.call("acquire", name="deploy/production", owner="you")
        assert (other["status"], other["owner"], other["failed"]) == ("held", "me", False)
        again = await me.call("acquire", name="deploy/production", lease=lock, ttl=120)
        assert (again["claim"], again["ttl"]) == (lock, 120)
        assert "use release" in (await me.call("give_back", claim=lock, how="untouched"))["error"]
        assert (await me.call("release", claim=lock))["state"] == "free"

    session(scratch, work)


def test_of_eight_sessions_one_gets_the_task(board: dibs.Board, scratch: Path) -> None:
    async def one(number: int, ready: asyncio.Barrier) -> Answer:
        options = ("--owner", f"agent-{number}")
        async with Client(parameters(str(scratch), *options)) as client:
            me = Session(client)
            await ready.wait()  # all servers run before anyone claims
            return await me.call("claim")

    async def main() -> list[Answer]:
        ready = asyncio.Barrier(SESSIONS)
        async with asyncio.timeout(2 * PATIENCE):
            return await asyncio.gather(*(one(number, ready) for number in range(SESSIONS)))

    board.add("only", b"x")
    found = asyncio.run(main())
    assert sorted(each["status"] for each in found) == ["claimed"] + ["empty"] * (SESSIONS - 1)
    (task,) = board.snapshot().tasks.values()
    assert (task.state, task.fence) == ("claimed", 1)
    assert [event.verb for event in board.log.of("only")] == ["add", "claim"]


def test_a_killed_client_leaves_no_server_and_its_claim_goes_stale(
    board: dibs.Board, scratch: Path
) -> None:
    board.add("a")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.core.mcp_client", scratch],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(mcp_client.__file__).parents[2],
        text=True,
    ) as client:
        assert client.stdout is not None
        claimed = json.loads(client.stdout.readline())
        (server,) = children(client.pid)
        client.kill()
    start = time.monotonic()
    until(lambda: not alive(server))
    # Far from the 2 s that a quiet machine needs; but the call that it was in waits for 50 s.
    assert time.monotonic() - start < 40
    taken = board.wait_for(lambda: board.claim(owner="next"), PATIENCE)
    assert taken is not None
    assert taken.fence == claimed["fence"] + 1


def test_only_the_calls_of_an_agent_keep_its_claim(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        claim = (await me.call("claim", ttl=1))["claim"]
        await asyncio.to_thread(until, lambda: board.entries()[0].state == "stale")
        assert (await me.call("look"))["rows"][0]["state"] == "stale"
        late = await me.call("beat", claim=claim)
        assert (late["status"], late["failed"]) == ("lost", True)

    board.add("a")
    session(scratch, work)


def test_a_lost_claim_says_stop(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        claim = (await me.call("claim"))["claim"]
        board.force_release(claim, "too slow")
        other = board.claim("a", owner="other")
        assert other is not None
        for tool, more in (
            ("beat", {}),
            ("done", {"result": "x"}),
            ("give_back", {"how": "untouched"}),
        ):
            lost = await me.call(tool, claim=claim, **more)
            assert (lost["status"], lost["failed"]) == ("lost", True), tool
            assert lost["next"].startswith("stop working on this claim")
            assert [row["claim"] for row in lost["now"]] == [other.name]
        bare = await me.call("beat", claim="a")
        assert bare["status"] == "not-exact"
        other.verify()

    board.add("a")
    session(scratch, work)


def test_a_lost_lock_says_stop_also_when_it_is_released(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        lock = (await me.call("acquire", name="door"))["claim"]
        board.force_release(lock, "too slow")
        for claim in (lock, "never.f1.x-0011223344"):
            lost = await me.call("release", claim=claim)
            assert lost["status"] == "lost", lost
            assert lost["next"].startswith("stop working on this claim")
        task = (await me.call("claim"))["claim"]
        assert (await me.call("release", claim=task))["status"] == "bad-name"

    board.add("a")
    session(scratch, work)


def test_a_paused_board_says_by_whom_and_a_wait_ends_with_the_pause(
    board: dibs.Board, scratch: Path
) -> None:
    async def work(me: Session) -> None:
        paused = await me.call("claim")
        assert (paused["status"], paused["failed"]) == ("paused", False)
        assert (paused["by"], paused["reason"]) == ("ops", "deploy")
        assert f"`dibs -d {scratch} resume`" in paused["error"]
        assert (await me.call("look"))["paused"][0]["reason"] == "deploy"
        waiting = asyncio.create_task(me.call("claim", wait=50))
        await asyncio.sleep(0)
        board.resume_claims([pause.name])
        assert (await waiting)["status"] == "claimed"

    board.add("a")
    pause, _ = board.pause_claims("deploy", by="ops")
    session(scratch, work)


def test_a_wait_ends_with_the_task_that_comes(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        waiting = asyncio.create_task(me.call("claim", wait=50))
        other = await me.call("look")  # answered while the other call waits
        assert other["counts"] == {}
        board.add("a")
        assert (await waiting)["id"] == "a"

    session(scratch, work)


def test_a_cancelled_wait_takes_nothing_any_more(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        call = asyncio.create_task(me.call("claim", wait=50))
        await me.call("look")  # answered after the wait has begun
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        await me.call("look")  # and this one after the cancellation was read
        board.add("a")
        assert await me.client.call_tool("acquire", {"name": "x", "wait": 2})
        assert (await me.call("look"))["counts"]["available"] == 1

    session(scratch, work)


def test_what_was_taken_for_a_call_that_was_cancelled_meanwhile_is_released(
    board: dibs.Board, scratch: Path
) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(board: dibs.Board, given: Answer) -> dibs.Claim | None:
        claim = board.claim(**given)
        inside.set()
        assert go_on.wait(PATIENCE)
        return claim

    async def main() -> None:
        tool = Taking("", "", slow, "claimed")
        async with anyio.create_task_group() as calls:
            calls.start_soon(taken, board, tool, {})
            assert await anyio.to_thread.run_sync(inside.wait, PATIENCE)
            assert board.snapshot().counts()["claimed"] == 1
            calls.cancel_scope.cancel()
            go_on.set()

    board.add("a")
    anyio.run(main)
    (task,) = board.snapshot().tasks.values()
    assert (task.state, task.fence, task.attempts) == ("available", 1, 0)


def test_the_tool_list_is_small(scratch: Path, board: dibs.Board) -> None:
    lines = raw(scratch, INITIALIZE, INITIALIZED, request(2, "tools/list"))
    answer = lines[2]
    assert len(answer["result"]["tools"]) == 8
    assert len(json.dumps(answer, separators=(",", ":"))) <= TOOL_LIST_BYTES


def test_there_is_one_resource_and_one_prompt(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        (resource,) = (await me.client.list_resources()).resources
        (content,) = (await me.client.read_resource(resource.uri)).contents
        fields = json.loads(content.text)  # type: ignore[union-attr]
        assert (fields["counts"], fields["board"]) == ({"available": 1}, str(scratch))
        (prompt,) = (await me.client.list_prompts()).prompts
        (message,) = (await me.client.get_prompt(prompt.name)).messages
        page = Path(dibs.__file__).parent / "AGENTS.md"
        assert message.content.text == page.read_text()  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="there is no resource"):
            await me.client.read_resource("file:///etc/passwd")
        with pytest.raises(MCPError, match="there is no prompt"):
            await me.client.get_prompt("x\x1b")

    board.add("a")
    session(scratch, work)


def test_the_board_is_fixed_and_named_even_when_it_is_gone(
    board: dibs.Board, scratch: Path
) -> None:
    async def work(me: Session) -> None:
        moved = f"{scratch}-moved"
        os.rename(scratch, moved)
        try:
            gone = await me.call("claim")
        finally:
            os.rename(moved, scratch)
        assert (gone["status"], gone["failed"]) == ("board-missing", True)
        assert gone["board"] == str(scratch)
        assert (await me.call("claim"))["status"] == "empty"

    session(scratch, work)


def test_a_call_that_makes_no_sense_is_refused_in_words(board: dibs.Board, scratch: Path) -> None:
    async def work(me: Session) -> None:
        for tool, arguments in (
            ("nope\x1b[2J", {}),
            ("force_release", {"claim": "a", "reason": "x"}),
            ("claim", {"ident": "a"}),
            ("claim", {"id": ["a"]}),
            ("claim", {"ttl": 1e308}),
            ("claim", {"owner": "a\nb"}),
            ("add", {"id": ""}),
            ("add", {"id": "x" * 5000}),
            ("look", {"filter": "color=red"}),
            ("done", {"claim": "../../etc/passwd"}),
            ("beat", {"claim": "\x1b[31m"}),
        ):
            refused = await me.call(tool, **arguments)
            assert refused["failed"], (tool, arguments)
            assert refused["status"] in ("bad-name", "not-exact"), refused
            assert refused["error"].isprintable()
        assert (await me.call("look"))["counts"] == {}

    session(scratch, work)


def test_garbage_on_the_wire_does_not_end_the_server(board: dibs.Board, scratch: Path) -> None:
    lines = raw(
        scratch,
        INITIALIZE,
        INITIALIZED,
        b"\x00\xff\xfe",
        b"{" * 5000,
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}',
        b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": 3}}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"add","arguments":'
        b'{"id":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"add","arguments":'
        b'{"id":"p","payload":"\\ud800"}}}',
        request(2, "tools/list"),
    )
    assert len(lines[2]["result"]["tools"]) == 8
    assert "error" in lines[7]
    assert "error" in lines[8]
    assert not board.snapshot().tasks


INITIALIZED = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'


def request(number: int, method: str, **params: object) -> bytes:
    """One line of a client."""
    fields = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(fields).encode()


INITIALIZE = request(
    1,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "raw", "version": "1"},
)


def raw(board: Path, *lines: bytes) -> dict[int, Answer]:
    """The answers to these lines by their ids; the last line is answered last."""
    found: dict[int, Answer] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "dibs", "-d", board, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        wanted = {json.loads(lines[0])["id"], json.loads(lines[-1])["id"]}
        server.stdin.write(b"".join(line + b"\n" for line in lines))
        server.stdin.flush()
        while wanted - found.keys():
            answer = json.loads(server.stdout.readline())
            found[answer.get("id")] = answer
        server.stdin.close()
        rest = server.stdout.read()
        found |= {(answer := json.loads(line)).get("id"): answer for line in rest.splitlines()}
        assert server.wait(PATIENCE) == 0
    return found


@contextmanager
def serving(board: Path, shell: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A server that has answered once; `shell` says where its output goes instead."""
    argv = [sys.executable, "-m", "dibs", "-d", str(board), "mcp"]
    if shell:
        argv = ["sh", "-c", f'exec "$@" {shell}', "sh", *argv]
    pipe = subprocess.PIPE
    # Without a buffer: closing one would write it to a server that may have ended.
    with subprocess.Popen(argv, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        try:
            say(server, INITIALIZE, INITIALIZED)
            if not shell:
                assert json.loads(heard(server))["id"] == 1
            yield server
        finally:
            server.kill()


def say(server: subprocess.Popen[bytes], *lines: bytes) -> None:
    assert server.stdin is not None
    with suppress(BrokenPipeError):
        server.stdin.write(b"".join(line + b"\n" for line in lines))
        server.stdin.flush()


def heard(server: subprocess.Popen[bytes]) -> bytes:
    assert server.stdout is not None
    return server.stdout.readline()


def stderr(server: subprocess.Popen[bytes]) -> list[bytes]:
    assert server.stderr is not None
    return server.stderr.read().splitlines()


def call(number: int, tool: str, **arguments: object) -> bytes:
    return request(number, "tools/call", name=tool, arguments=arguments)


@pytest.mark.parametrize("tool", ["claim", "acquire", ""])
def test_a_claim_whose_answer_no_one_reads_is_released(
    board: dibs.Board, scratch: Path, tool: str
) -> None:
    board.add("a")
    with serving(scratch) as server:
        assert server.stdout is not None
        server.stdout.close()
        if tool:
            say(server, call(2, tool, **({"name": "door"} if tool == "acquire" else {})))
        assert server.wait(PATIENCE) == 1
        (line,) = stderr(server)
        assert line.startswith(b"dibs: standard output: Broken pipe")
    counts = board.snapshot().counts()
    assert (counts["claimed"], counts["held"], counts["available"]) == (0, 0, 1)


def test_a_claim_that_waits_is_not_made_any_more_when_no_one_reads(
    board: dibs.Board, scratch: Path
) -> None:
    with serving(scratch) as server:
        say(server, call(2, "claim", wait=50), request(3, "tools/list"))
        assert json.loads(heard(server))["id"] == 3
        assert server.stdout is not None
        server.stdout.close()
        assert server.wait(PATIENCE) == 1
        board.add("a")
    assert board.snapshot().counts()["available"] == 1


def test_a_full_disk_is_one_line_and_no_claim_is_left(board: dibs.Board, scratch: Path) -> None:
    board.add("a")
    with serving(scratch, ">/dev/full") as server:
        say(server, call(2, "claim"))
        assert server.wait(PATIENCE) == 1
        (line,) = stderr(server)
        assert b"No space left on device" in line
    assert board.snapshot().counts()["claimed"] == 0


@pytest.mark.parametrize(("end", "code"), [("reader", 1), ("interrupt", 130), ("writer", 0)])
def test_a_claim_whose_answer_is_stuck_in_a_full_pipe_is_released(
    board: dibs.Board, scratch: Path, end: str, code: int
) -> None:
    board.add("a", b"x" * 30_000)
    with serving(scratch) as server:
        assert server.stdout is not None
        fcntl.fcntl(server.stdout, fcntl.F_SETPIPE_SZ, 4096)
        say(server, call(2, "claim"))
        until(lambda: board.snapshot().counts()["claimed"] == 1)
        if end == "interrupt":
            server.send_signal(signal.SIGINT)
        else:
            pipe = server.stdout if end == "reader" else server.stdin
            assert pipe is not None
            pipe.close()
        assert server.wait(PATIENCE) == code
    assert board.snapshot().counts()["claimed"] == 0


def test_a_claim_that_was_answered_is_kept_when_the_client_leaves(
    board: dibs.Board, scratch: Path
) -> None:
    board.add("a")
    with serving(scratch) as server:
        say(server, call(2, "claim"))
        assert json.loads(heard(server))["result"]["structuredContent"]["status"] == "claimed"
        assert server.stdout is not None
        server.stdout.close()
        assert server.wait(PATIENCE) == 1
    assert board.snapshot().counts()["claimed"] == 1


def test_a_closed_standard_output_is_one_line(board: dibs.Board, scratch: Path) -> None:
    with serving(scratch, ">&- </dev/null") as server:
        assert server.wait(PATIENCE) == 1
        (line,) = stderr(server)
        assert line.startswith(b"dibs: standard output: closed")


@pytest.mark.parametrize("tool", ["", "claim", "acquire"])
def test_an_interrupt_ends_the_server_at_once(board: dibs.Board, scratch: Path, tool: str) -> None:
    board.acquire("door")
    with serving(scratch) as server:
        if tool:
            named = {"name": "door"} if tool == "acquire" else {}
            say(server, call(2, tool, wait=50, **named), request(3, "tools/list"))
            assert json.loads(heard(server))["id"] == 3
        server.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert server.wait(PATIENCE) == 130
        # Far from the 2 s that a quiet machine needs; but the call that it was in waits for 50 s.
        assert time.monotonic() - start < 40
        assert stderr(server) == []


def test_requests_may_come_from_a_file(board: dibs.Board, scratch: Path, tmp_path: Path) -> None:
    lines = tmp_path / "requests"
    lines.write_bytes(INITIALIZE + b"\n" + INITIALIZED)
    with lines.open() as given:
        argv = [sys.executable, "-m", "dibs", "-d", str(scratch), "mcp"]
        done = subprocess.run(argv, stdin=given, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_line_that_is_no_message_is_answered_with_an_error(
    board: dibs.Board, scratch: Path
) -> None:
    with serving(scratch) as server:
        for line, ident, code in (
            (call(9, "add", id="a").replace(b'"a"', b'"\\ud800"'), 9, -32700),
            (b"{oops", None, -32700),
            (b'{"jsonrpc": "1.0", "id": "x", "method": "tools/list"}', "x", -32600),
            (b"[]", None, -32600),
            *(
                (b'{"jsonrpc": "2.0", "id": %s, "method": "tools/list"}' % ident, None, -32600)
                for ident in (b"1.5", b"1e3", b"true", b"null", b'{"a": 1}', b"[1]")
            ),
        ):
            say(server, line)
            answer = json.loads(heard(server))
            assert (answer["id"], answer["error"]["code"]) == (ident, code), line
        say(server, request(10, "tools/list"))
        assert len(json.loads(heard(server))["result"]["tools"]) == 8


def test_a_server_whose_storage_hangs_ends_with_its_client() -> None:
    code = (
        "import os, threading\n"
        "from dibs.mcp.server import _end_with\n"
        "_end_with(os.dup(0))\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "print('stuck', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as stuck:
        assert stuck.stdout is not None
        assert stuck.stdin is not None
        assert stuck.stdout.readline() == b"stuck\n"
        assert stuck.poll() is None
        stuck.stdin.close()
        try:
            assert stuck.wait(PATIENCE) == 0
        finally:
            stuck.kill()


def test_a_worker_never_imports_the_sdk() -> None:
    code = "import sys, dibs, dibs.cli.work, dibs.cli.mcp, dibs.mcp.tools; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert not {"mcp", "mcp_types", "anyio", "pydantic"} & set(loaded.split())


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def alive(pid: int) -> bool:
    """Whether a process runs; it may be no child of ours."""
    try:
        os.kill(pid, 0)
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
