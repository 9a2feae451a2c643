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
