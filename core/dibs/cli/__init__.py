"""The command `dibs`: one line for every verb, and nothing imported that the verb does not need."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.errors import DibsError

if TYPE_CHECKING:
    from argparse import Namespace


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; every refusal is one line on stderr and a documented exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    open_stdio()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not know every character
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        mute(1)
        return 0
    except OSError as error:
        from dibs.cli.say import complain

        mute(1)
        where = error.filename or "standard output"
        complain(f"{where}: {error.strerror}: look at what was done before you try again")
        return 1
    except MemoryError:
        from dibs.cli.say import complain

        mute(1)
        complain("out of memory: look at what was done before you try again")
        return 1
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str]) -> int:
    """The exit code of one verb, of help, or of bad usage."""
    from dibs.cli.say import Voice

    try:
        args = _parsed(argv)
    except SystemExit as end:
        return int(end.code or 0)
    voice = Voice(json=args.json)
    try:
        code: int = args.run(voice, args)
        return code
    except DibsError as error:
        from dibs.cli.refusal import tell

        return tell(voice, error)


def _parsed(argv: list[str]) -> Namespace:
    """The arguments, and the verb's own modules with them: nothing of it is ever garbage."""
    from dibs.cli.grammar import parse

    gc.disable()
    try:
        return parse(argv)
    finally:
        gc.freeze()
        gc.enable()


def mute(fd: int) -> None:
    """Let what a standard stream still holds go nowhere, where it would fail again at the end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)


closed: list[int] = []
"""The standard streams that the caller had closed."""


def open_stdio() -> None:
    """Put nothing in the place of a standard stream that is closed, lest another file take it."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            closed.append(fd)
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
