"""The hooks of an agent's client: `dibs hook EVENT` with the client's JSON on standard input.

A hook must never break a client. Whatever goes wrong, it says so in one line on stderr and exits
with 0; exit code 2 would stop the client's tool.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import stat
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.cli.say import complain
from dibs.model.errors import BadName, DibsError
from dibs.model.metadata import value_of
from dibs.model.safe_text import shown
from dibs.model.sessions import KEY, OURS, is_session

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.mine import Loss
    from dibs.cli.say import Voice
    from dibs.model.entries import Entry

INPUT_BYTES = 64 << 20
"""The longest input; the answer of a tool is a part of it."""
ENV_BYTES = 1 << 20
"""The longest `$CLAUDE_ENV_FILE`."""
HARMLESS = frozenset(
    (
        *("Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch"),
        *("TodoRead", "TodoWrite", "Task", "Agent", "Skill", "SlashCommand", "AskUserQuestion"),
        *("EnterPlanMode", "ExitPlanMode", "BashOutput", "KillShell"),
    )
)
"""Tools of Claude Code without side effects of their own: a lost claim does not stop them."""
SOON = 10.0
"""Before a tool runs, claims are renewed whose last heartbeat is so many seconds ago: nothing beats
while it runs."""
_match_dibs = re.compile(
    r"\s*dibs(?: -d (?:[^\s;&|<>`$()]|\$\w)+| --json)* "
    r"(?:verify|prime|ls|show|logs?|status|stats|pauses|where|"
    r"help|done|fail|release|ask|beat|note|claim|acquire|wait)\b(?:[^;&|<>`$()\n]|\$\w)*"
).fullmatch
"""A single command of dibs that is needed after a loss; `run` would start any other program.

A path is not accepted: any program can have the name.
"""


class HookInput(NamedTuple):
    """What a client said, as far as it can be used."""

    session: str
    cwd: str
    tool: str
    command: str
    """What a shell is asked to run; empty for another tool."""
    reason: str


def hook(voice: Voice, args: argparse.Namespace) -> int:
    """Serve one event; returns 0 whatever happens, and says in one line what was wrong."""
    wrong: list[str] = []
    try:
        _serve(args, wrong)
        sys.stdout.flush()
    except Exception as error:  # the client's work is worth more than this hook
        from dibs.cli.stdio import mute

        if isinstance(error, OSError):
            mute(1)
        known = isinstance(error, (DibsError, OSError))
        wrong.append(str(error) if known else f"{type(error).__name__}: {error}")
    if wrong:
        complain(f"hook {args.event[:40]}: {'; '.join(wrong)}")
    return 0


def _serve(args: argparse.Namespace, wrong: list[str]) -> None:
    """Serve one event; what goes wrong and does not end that is added to `wrong`."""
    serve = EVENTS.get(args.event)
    if serve is None:
        raise BadName(f"there is no such event: use one of {', '.join(EVENTS)}")
    call = read(sys.stdin.buffer.read(INPUT_BYTES + 1))
    if serve is session_start:
        wrong += _export(call.session)
    if call.cwd:
        _enter(call.cwd)
    from dibs.cli.boards import board_of

    serve(board_of(args), call)


def read(data: bytes) -> HookInput:
    """The call in a client's JSON; refused without a session, whose claims would be unknown."""
    if len(data) > INPUT_BYTES:
        raise BadName(f"the input is longer than {INPUT_BYTES >> 20} MiB")
    try:
        fields: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise BadName("the input is not valid JSON") from None
    if not isinstance(fields, dict):
        raise BadName("the input is not a JSON object")
    session = fields.get("session_id")
    if not is_session(session):
        raise BadName("the input has no session_id, or an invalid one")
    given = fields.get("tool_input")
    inner = given if isinstance(given, dict) else {}
    texts = (fields.get("cwd"), fields.get("tool_name"), inner.get("command"), fields.get("reason"))
    return HookInput(str(session), *(text if isinstance(text, str) else "" for text in texts))


def _enter(cwd: str) -> None:
    """Go where the client is."""
    try:
        os.chdir(cwd)
    except OSError as error:
        raise BadName(f"the cwd of the input: {cwd}: {error.strerror}") from None
    except ValueError:  # a NUL, or half of a surrogate
        raise BadName("the cwd of the input is not a path") from None


def _export(session: str) -> list[str]:
    """Let the commands of this session know its id, if the client offers a file for that.

    Returns what went wrong.
    """
    path = os.environ.get("CLAUDE_ENV_FILE")
    if not path:
        return []
    line = f"export {OURS}={session}\n".encode()
    try:
        with open(path, "a+b", buffering=0, opener=_regular) as file:
            file.seek(0)
            data = file.read(ENV_BYTES + 1) or b""
            if len(data) > ENV_BYTES:
                raise OSError(errno.EFBIG, f"longer than {ENV_BYTES >> 20} MiB")
            if not data.endswith(line):
                file.write(line)
    except OSError as error:
        return [f"{path}: {error.strerror}: claims are not tied to this session"]
    return []


def _regular(path: str, flags: int) -> int:
    """Open a regular file, or raise; a FIFO does not block, and a device is never read."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file")


def session_start(board: Board, call: HookInput) -> None:
    """Print the session's claims and how to work; the client gives it to the agent."""
    from dibs.cli import mine, prime

    rows = mine.claims_of(board, call.session)
    lines = [f"dibs board {board.location.label}", *prime.listed(rows, _lost(board, call, rows))]
    text = "\n".join([*lines, prime.HOW, prime.BEATEN, prime.MORE])
    for line in text.split("\n"):
        print(shown(line))


def pre_tool(board: Board, call: HookInput) -> None:
    """Renew the session's claims, and refuse a side effect after a lost one until the agent asks.

    The tool then starts with at least eleven twelfths of each lease.
    """
    if call.tool in HARMLESS:
        return
    from dibs.cli import mine

    rows = mine.claims_of(board, call.session)
    trouble = None
    try:
        _beat(board, rows, call, lambda ttl: min(SOON, ttl / 12))
    except DibsError as error:
        trouble = error
    if not _match_dibs(call.command):
        for loss in _lost(board, call, rows)[:1]:  # after the beat, which may have come too late
            _deny(loss)
            return
    if trouble is not None:
        raise trouble


def _deny(loss: Loss) -> None:
    """Print the decision that keeps the client from running the tool."""
    why = (
        f"dibs: this session has lost its claim {loss.claim} ({loss.why}): stop that work "
        f"without any further side effect, run `dibs verify {loss.claim}` alone to confirm "
        "that, and go on only with other work."
    )
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": shown(why),
    }
    print(json.dumps({"hookSpecificOutput": decision}))


def _lost(board: Board, call: HookInput, rows: list[Entry]) -> list[Loss]:
    from dibs.cli import mine

    return mine.lost(board, call.session, rows)


def post_tool(board: Board, call: HookInput) -> None:
    """Renew the session's claims whose last heartbeat is a third of the ttl ago."""
    _beat(board, board.claims_with(KEY, call.session), call)


def _beat(
    board: Board,
    rows: list[Entry],
    call: HookInput,
    due: Callable[[float], float] = lambda ttl: ttl / 3,
) -> None:
    """Renew those that are due; one that has just been resumed elsewhere is left alone."""
    for row in rows:
        if row.state == "stale" or row.ttl is None or (row.age or 0.0) < due(row.ttl):
            continue
        claim = board.attach(row.claim)
        if value_of(claim.record.metadata, KEY) == call.session:
            claim.beat()


def stop(board: Board, call: HookInput) -> None:
    """Renew them once more before the agent waits, and show the user what is still held."""
    rows = board.claims_with(KEY, call.session)
    _beat(board, rows, call)
    if rows:
        names = ", ".join(row.claim for row in rows[:3])
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        what = "they" if len(rows) > 1 else "it will"
        text = f"dibs: this session still holds {names}{more}; without a tool call {what} expire"
        print(json.dumps({"systemMessage": text}))


def session_end(board: Board, call: HookInput) -> None:
    """Release the session's claims; no attempt is counted."""
    why = f"session ended: {call.reason[:60]}" if call.reason else "session ended"
    trouble = None
    for row in board.claims_with(KEY, call.session):
        try:
            board.attach(row.claim).release(shown(why))
        except DibsError as error:
            trouble = error
    if trouble is not None:
        raise trouble


EVENTS: dict[str, Callable[[Board, HookInput], None]] = {
    "session-start": session_start,
    "pre-tool": pre_tool,
    "post-tool": post_tool,
    "stop": stop,
    "session-end": session_end,
}
"""What serves each event."""
