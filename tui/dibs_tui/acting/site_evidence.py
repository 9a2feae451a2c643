"""A site's own evidence about a holder: one line of a command of the user's settings.

The command never decides: its line is shown as an observation, and the verdict stays the same.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs import Holder

LIMIT = 5.0
"""Seconds after which the command and all that it started are killed."""
CHARS = 200
_BYTES = 4096
"""Bytes that are read of its output; a command that writes more is ended."""
_find = re.compile(r"\{(host|owner|metadata)\}")


def asking(command: Sequence[str]) -> str:
    """What is shown until the command has answered."""
    return f"{_name(command)} is asked …"


def ask(command: Sequence[str], holder: Holder, limit: float = LIMIT) -> str:
    """What the command says about a holder, in one safe line; never raises."""
    facts = {"host": holder.host, "owner": holder.owner, "metadata": holder.metadata}
    name = _name(command)
    argv, why = arguments(command, facts)
    if why:
        return f"{name} was not asked: {why}"
    try:
        output, code = _run(argv, limit)
    except OSError as error:
        return clean(f"{name} cannot be run: {error.strerror}", CHARS)
    line = next((found for found in output.splitlines() if found.strip()), "").strip()
    says = f"{name} says: {line}" if line else f"{name} says nothing"
    if code is None:
        return f"{clean(says, CHARS)} (ended after {limit:g} s)"
    return clean(says, CHARS) + (f" (exit {code})" if code else "")


def arguments(command: Sequence[str], facts: Mapping[str, str]) -> tuple[list[str], str]:
    """The command with its arguments, and why it must not be run; the facts are hostile.

    `{host}`, `{owner}` and `{metadata}` are replaced; without any of these, all three are added.
    """
    words = list(command)
    added = not any(map(_find.search, words[1:]))
    if added:
        words += ["{host}", "{owner}", "{metadata}"]
    argv = words[:1]
    for word in words[1:]:
        used = _find.findall(word)
        missing = [fact for fact in used if not facts[fact]]
        if missing and not added:
            return [], f"the claim has no {missing[0]}"
        filled = _find.sub(lambda found: facts[found[1]], word)
        if filled.startswith("-") and not word.startswith("-"):
            return [], f"the {used[0]} begins with a dash, as an option does"
        if "\0" in filled:
            return [], f"the {used[0]} contains a NUL"
        argv.append(filled)
    return argv, ""


def _run(argv: Sequence[str], limit: float) -> tuple[str, int | None]:
    """The beginning of what a command prints, and its exit code; None if it had to be ended."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        argv, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, start_new_session=True
    )
    assert process.stdout is not None
    until = time.monotonic() + limit
    with process.stdout as pipe:
        output, complete = _read(pipe.fileno(), until)
    try:
        code = process.wait(max(0.0, until - time.monotonic()) if complete else 0)
    except subprocess.TimeoutExpired:
        code = None
    with suppress(ProcessLookupError, PermissionError):  # also what it left running
        os.killpg(process.pid, signal.SIGKILL)
    if code is None:
        process.wait()
    return output.decode("utf-8", "replace"), code


def _read(pipe: int, until: float) -> tuple[bytes, bool]:
    """What comes until the end, the time or the limit of bytes; whether that was the end."""
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while len(output) < _BYTES:
            if not selector.select(max(0.0, until - time.monotonic())):
                return output, False
            found = os.read(pipe, _BYTES - len(output))
            if not found:
                return output, True
            output += found
    return output, False


def _name(command: Sequence[str]) -> str:
    return clean(os.path.basename(command[0]) or command[0], 40)
