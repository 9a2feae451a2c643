"""The server over stdio. It beats for no one: only a call of a tool renews a lease."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as wire
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from dibs.board import Board, open
from dibs.mcp import answers
from dibs.mcp.answers import Answer
from dibs.mcp.arguments import checked, schema_of
from dibs.mcp.pipes import Replies, hung_up, pass_on, take_over
from dibs.mcp.taking import in_thread, let_go, taken
from dibs.mcp.tools import TOOLS, Given, Taking
from dibs.model.errors import BadName, DibsError, short
from dibs.model.location import Location

if TYPE_CHECKING:
    from dibs.protocols import Claim

Context = Any
"""What the SDK says of a request; nothing here depends on it."""
BOARD_URI = "dibs://board"
PROMPT = "dibs"
_SNAPSHOT_ROWS = 200
_GRACE = 1.5
"""Seconds that calls may take to end after the client has left; storage may hang for longer."""
_LAST = 0.5
"""Seconds that a reply may wait for its reader after the client has closed its other pipe."""
_BOTH = 100
"""Milliseconds within which a client that exits closes both pipes."""
_NEXT = {
    1: "try a few times, then report it",
    2: "correct the call",
    3: "the board has changed: look, then decide again",
    4: "do something else; ask again later",
    5: "stop working on this claim: no commit, no clean-up",
}
_INSTRUCTIONS = (
    "A board of tasks and locks that agents share. Claim before any side effect, keep the exact "
    "name of the claim, beat at least every third of its ttl, stop when it is lost. Only your "
    f"calls of beat and acquire keep a claim. The prompt {PROMPT} has the rules in full."
)


class BoardServer:
    """Answers the requests of one client about one board."""

    def __init__(
        self,
        location: Location,
        owner: str | None,
        page: str,
        refusal: Callable[[DibsError], dict[str, object]],
    ) -> None:
        """`owner` is the default of claims, `page` the prompt, `refusal` an error as fields."""
        self._location = location
        self._owner = owner
        self._page = page
        self._refusal = refusal
        self._unsent: dict[str, Claim] = {}
        """New claims by their names, until the answer that names them is written."""

    def server(self, version: str = "") -> Server[Any]:
        """The server of the SDK."""
        return Server(
            "dibs",
            version=version,
            instructions=f"{_INSTRUCTIONS} The board: {answers.safe(self._location.label)}",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def _list_tools(self, _: Context, __: object) -> wire.ListToolsResult:
        return wire.ListToolsResult(
            tools=[
                wire.Tool(name=name, description=tool.text, input_schema=schema_of(tool.takes))
                for name, tool in TOOLS.items()
            ]
        )

    async def _call_tool(
        self, _: Context, params: wire.CallToolRequestParams
    ) -> wire.CallToolResult:
        answer, failed = await self.call(params.name, params.arguments or {})
        return wire.CallToolResult(
            content=[wire.TextContent(type="text", text=json.dumps(answer))],
            structured_content=answer,
            is_error=failed,
        )

    async def _list_resources(self, _: Context, __: object) -> wire.ListResourcesResult:
        about = "The counts of the board and its most urgent tasks and locks"
        one = wire.Resource(
            uri=BOARD_URI, name="board", description=about, mime_type="application/json"
        )
        return wire.ListResourcesResult(resources=[one])

    async def _read_resource(
        self, _: Context, params: wire.ReadResourceRequestParams
    ) -> wire.ReadResourceResult:
        if str(params.uri) != BOARD_URI:
            raise _bad_request(f"there is no resource {short(str(params.uri))}: read {BOARD_URI}")
        answer, _failed = await self._answered(
            lambda: in_thread(lambda: answers.of_board(self._open(), most=_SNAPSHOT_ROWS))
        )
        text = wire.TextResourceContents(
            uri=BOARD_URI, mime_type="application/json", text=json.dumps(answer)
        )
        return wire.ReadResourceResult(contents=[text])

    async def _list_prompts(self, _: Context, __: object) -> wire.ListPromptsResult:
        about = "How an agent works with this board"
        return wire.ListPromptsResult(prompts=[wire.Prompt(name=PROMPT, description=about)])

    async def _get_prompt(
        self, _: Context, params: wire.GetPromptRequestParams
    ) -> wire.GetPromptResult:
        if params.name != PROMPT:
            raise _bad_request(f"there is no prompt {short(params.name)}: get {PROMPT}")
        content = wire.TextContent(type="text", text=self._page)
        return wire.GetPromptResult(messages=[wire.PromptMessage(role="user", content=content)])

    async def call(self, name: str, given: Given) -> tuple[Answer, bool]:
        """The answer of a tool, and whether the call failed; an error is an answer too."""
        return await self._answered(partial(self._called, name, given))

    async def _called(self, name: str, given: Given) -> Answer:
        tool = TOOLS.get(name)
        if tool is None:
            raise BadName(f"there is no tool {short(name)}: use one of {', '.join(TOOLS)}")
        given = checked(name, tool.takes, given)
        if isinstance(tool, Taking):
            return await self._taken(tool, given)
        return await in_thread(lambda: tool.run(self._open(), given))

    async def _answered(self, work: Callable[[], Any]) -> tuple[Answer, bool]:
        """The answer of this work with the board that it is about, or the error as an answer."""
        failed = True
        try:
            found = await work()
            failed = "error" in found
        except DibsError as error:
            found = self._refusal(error) | {"next": _NEXT[error.exit_code]}
            failed = error.exit_code != 4  # nothing to take now is an answer, and no failure
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            found = {"status": "fault", "error": f"this is a fault in dibs: {what}"}
        return answers.safe(found | {"board": self._location.label}), failed

    def _open(self) -> Board:
        """The board, opened for one call: its settings may have changed, and its mount be gone."""
        board = open(self._location.where)
        board.require_mounted()
        return board

    async def _taken(self, tool: Taking, given: Given) -> Answer:
        if self._owner is not None:
            given.setdefault("owner", self._owner)
        board = await in_thread(self._open)
        claim, answer = await taken(board, tool, given)
        if claim is not None and "lease" not in given:
            self._unsent[claim.name] = claim
        return answer

    def written(self, message: wire.JSONRPCMessage) -> None:
        """A reply was written: its reader keeps the claim that it names."""
        if isinstance(message, wire.JSONRPCResponse):
            fields = message.result.get("structuredContent")
            if isinstance(fields, dict):
                self._unsent.pop(fields.get("claim", ""), None)

    def release_unsent(self) -> None:
        """Release the claims whose names no one has read."""
        while self._unsent:
            let_go(self._unsent.popitem()[1], "the answer could not be written")


def _bad_request(message: str) -> Exception:
    from mcp import MCPError

    return MCPError(wire.INVALID_PARAMS, message)


def serve(server: BoardServer, version: str = "") -> OSError | None:
    """Serve the client on standard input and output until it leaves.

    Returns why an answer could not be written, if the client is still there.
    """
    source, sink = take_over()
    sys.stdout = sys.stderr
    error = anyio.run(_serve, server, version, source, sink)
    return None if error is None or hung_up(source, _BOTH) else error


async def _serve(server: BoardServer, version: str, source: int, sink: int) -> OSError | None:
    made, interrupted = server.server(version), False
    replies = Replies(sink, server.written)
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    loop = asyncio.get_running_loop()

    def in_loop(*call: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(*call)

    async def interrupt() -> None:
        nonlocal interrupted
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                interrupted = True
                _end_soon(130)
                replies.fail()

    async def end() -> None:
        await replies.failed.wait()
        serving.cancel_scope.cancel()

    _end_with(source, first=partial(in_loop, loop.call_later, _LAST, replies.fail))
    _end_with(sink, 1, partial(in_loop, replies.left), unless=source)
    async with anyio.create_task_group() as serving:
        serving.start_soon(end)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            serving.start_soon(interrupt)
        serving.start_soon(pass_on, source, to_server, replies)
        await made.run(requests, replies, made.create_initialization_options())
        serving.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(server.release_unsent)
    if interrupted:
        raise KeyboardInterrupt
    return replies.error


def _end_with(
    fd: int, code: int = 0, first: Callable[[], object] | None = None, unless: int | None = None
) -> None:
    """End this process soon after the other end of a pipe is closed, even if storage hangs.

    `first` is called at once. Nothing is done if the other end of `unless` is closed as well.
    """

    def watch() -> None:
        hung_up(fd)
        if unless is not None and hung_up(unless, _BOTH):
            return
        if first is not None:
            first()
        time.sleep(_GRACE)
        os._exit(code)

    threading.Thread(target=watch, name="dibs-client", daemon=True).start()


def _end_soon(code: int) -> None:
    """End this process after the time that calls may take to end."""

    def wait() -> None:
        time.sleep(_GRACE)
        os._exit(code)

    threading.Thread(target=wait, name="dibs-end", daemon=True).start()
