"""Waiting for a claim without a thread of its own, and without leaving one behind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint_if_cancelled

from dibs.mcp import answers
from dibs.mcp.answers import Answer
from dibs.model.errors import DibsError, Held, Paused
from dibs.model.waiters import unreachable

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.mcp.tools import Given, Taking
    from dibs.protocols import Claim, Presence

Found = TypeVar("Found")
Taken = tuple["Claim | None", Answer]
_SHOWN_AFTER = 3
"""Seconds of waiting after which others see this worker, as for `dibs claim --wait`."""


async def taken(board: Board, tool: Taking, given: Given) -> Taken:
    """A task or lock with the answer; what was taken for a call that was cancelled is released."""
    seconds = given.get("wait", 0.0)
    attempt = partial(_attempted, partial(tool.take, board, given), tool.status)
    undo = None if "lease" in given else _undo  # a renewal is undone by no one
    idle = tool.status == "claimed" and "id" not in given and seconds > _SHOWN_AFTER
    presence = board.presence(given.get("owner")) if idle else None
    try:
        return await _waited(board, attempt, seconds, undo, presence)
    finally:
        if presence is not None:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(presence.end)


async def _waited(
    board: Board,
    attempt: Callable[[], Taken],
    seconds: float,
    undo: Callable[[Taken], object] | None,
    presence: Presence | None,
) -> Taken:
    """Try now and whenever the board may have changed, until the time is up."""
    retry, start = board.retry(), anyio.current_time()
    while True:
        waited = anyio.current_time() - start
        refused: DibsError | None = None
        retry.begin()
        try:
            found = await in_thread(attempt, undo=undo)
            if found[0] is not None or waited >= seconds:
                return found
        except Held as error:
            refused = error
            retry.held(error)
        except Paused as error:
            refused = error
        except DibsError as error:
            refused = unreachable(error)
        if refused is not None and waited >= seconds:
            raise refused
        retry.missed()
        if presence is not None and waited >= _SHOWN_AFTER:
            state = "paused" if isinstance(refused, Paused) else "idle"
            await in_thread(partial(presence.keep, state))
        with anyio.move_on_after(start + seconds - anyio.current_time()):
            while True:
                await anyio.sleep(retry.every)
                if await in_thread(retry.due):
                    break


async def in_thread(
    work: Callable[[], Found], *, undo: Callable[[Found], object] | None = None
) -> Found:
    """Do what may block in a thread; if the call was cancelled meanwhile, undo it."""
    found = await to_thread.run_sync(work)
    if undo is not None:
        try:
            await checkpoint_if_cancelled()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(undo, found)
            raise
    return found


def _attempted(take: Callable[[], Claim | None], status: str) -> Taken:
    """A claim with its answer; it is released if its payload cannot be read."""
    claim = take()
    try:
        return claim, answers.of_claim(claim, status)
    except DibsError:
        let_go(claim, "its payload could not be read")
        raise


def _undo(found: Taken) -> None:
    let_go(found[0], "the call was cancelled")


def let_go(claim: Claim | None, reason: str) -> None:
    """Release a claim whose name no one learns; if that fails, it expires."""
    if claim is not None:
        try:
            claim.release_unconfirmed(reason)
        except DibsError:
            return
