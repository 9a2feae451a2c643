"""The command `dibs`: one line for every verb, and nothing imported that the verb does not need."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from dibs.errors import DibsError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; every refusal is one line on stderr and a documented exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    open_stdio()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not know every character
            stream.reconfigure(errors="backslashreplace")
    from dibs.cli.grammar import parse
    from dibs.cli.say import Voice

    args = parse(argv)
    voice = Voice(json=args.json)
    try:
        code: int = args.run(voice, args)
        sys.stdout.flush()
        return code
    except DibsError as error:
        from dibs.cli.refusal import tell

        return tell(voice, error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130


def open_stdio() -> None:
    """Put nothing in the place of a standard stream that is closed, lest another file take it."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
