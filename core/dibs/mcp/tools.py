"""The eight tools: what workers and producers do on one board. No operator's act is among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.mcp import answers
from dibs.mcp.answers import Answer
from dibs.model.errors import BadName
from dibs.model.task import HELD

if TYPE_CHECKING:
    from dibs.board import Board, Claim

Given = dict[str, Any]


class Tool(NamedTuple):
    """A tool that answers at once."""

    takes: str
    """Its arguments, keys of `ARGUMENTS`; a `!` follows those that it needs."""
    text: str
    run: Callable[[Board, Given], Answer]


class Taking(NamedTuple):
    """A tool that makes a claim, and may wait for it."""

    takes: str
    text: str
    take: Callable[[Board, Given], Claim | None]
    status: str


def _terms(given: Given) -> Given:
    return {
        "owner": given.get("owner"),
        "ttl": given.get("ttl"),
        "metadata": given.get("meta", ""),
    }


def _claim(board: Board, given: Given) -> Claim | None:
    return board.claim(given.get("id"), **_terms(given))


def _acquire(board: Board, given: Given) -> Claim:
    return board.acquire(
        given["name"],
        slots=given.get("slots", 1),
        lease=given.get("lease", ""),
        **_terms(given),
    )


def _beat(board: Board, given: Given) -> Answer:
    claim = board.attach(given["claim"])
    claim.beat(ttl=given.get("ttl"), note=given.get("note"))
    return answers.of_beat(claim)


def _done(board: Board, given: Given) -> Answer:
    result = given.get("result")
    data = None if result is None else _bytes("result", result)
    return answers.of_task(board.attach(given["claim"]).done(data), "done")


def _give_back(board: Board, given: Given) -> Answer:
    claim, how, text = board.attach(given["claim"]), given["how"], given.get("text", "")
    if claim.task.state == HELD:
        raise BadName("this claim is on a lock: use release")
    if how == "ask":
        if "in" in given:
            raise BadName("give_back: in goes with retry and untouched: leave it out")
        return answers.of_task(claim.ask(text), "asked")
    if how == "retry":
        if not text.strip():
            raise BadName("give_back: retry needs text: say why the attempt failed")
        return answers.of_task(claim.fail(text, retry_in=given.get("in")), "failed")
    return answers.of_task(claim.release(text, start_in=given.get("in", 0.0)), "released")


def _release(board: Board, given: Given) -> Answer:
    claim = board.attach(given["claim"])
    if claim.task.state != HELD:
        claim.verify()  # what is gone is lost, whatever it was on
        raise BadName("this claim is on a task: use done or give_back")
    return answers.of_task(claim.release(given.get("reason", "")), "released")


def _look(board: Board, given: Given) -> Answer:
    if "id" not in given:
        return answers.of_board(board, given.get("filter", ""))
    if "filter" in given:
        raise BadName("look: give id or filter, not both")
    return answers.of_id(board, given["id"])


def _add(board: Board, given: Given) -> Answer:
    task = board.add(
        given["id"],
        _bytes("payload", given.get("payload", "")),
        priority=given.get("priority", 5),
        start_in=given.get("in", 0.0),
    )
    return answers.of_task(task, "added")


def _bytes(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadName(f"the {what} contains an unpaired surrogate: send it again") from None


TOOLS: dict[str, Tool | Taking] = {
    "claim": Taking(
        "id owner ttl meta wait",
        "Claim the next task, or the one named, before any work. Keep the claim's name.",
        _claim,
        "claimed",
    ),
    "beat": Tool(
        "claim! note ttl",
        "Renew the lease: every third of the ttl, and before each side effect. "
        "If the claim is lost, stop.",
        _beat,
    ),
    "done": Tool("claim! result", "Commit the finished task.", _done),
    "give_back": Tool("claim! how! text in", "End a claim on a task without a commit.", _give_back),
    "acquire": Taking(
        "name! owner ttl meta wait slots lease",
        "Acquire a lock, or renew it: sole use of something.",
        _acquire,
        "acquired",
    ),
    "release": Tool("claim! reason", "Free a lock.", _release),
    "look": Tool("id filter", "Show the board, or everything about one id.", _look),
    "add": Tool("id! payload priority in", "Add a task for others. An id is added once.", _add),
}
