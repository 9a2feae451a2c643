"""The command `dibs`; each run imports only what its verb needs."""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Callable, Sequence
from functools import partial

from dibs.cli.stdio import mute, open_stdio, to_the_end, unwritten
from dibs.model.errors import DibsError


def main(argv: Sequence[str] | None = None, started: Callable[[], object] | None = None) -> int:
    """Run one verb; reports an error as one line on stderr and a documented exit code.

    `started` is called when the command line is parsed and the verb is about to run.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        open_stdio()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the terminal may lack a character
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv, started)
        sys.stdout.flush()
        return code
    except OSError as error:
        return unwritten(error)
    except MemoryError:
        from dibs.cli.say import complain

        mute(1)
        complain("out of memory: check the board before you try again")
        return 1
    except KeyboardInterrupt:
        return 130
    except RuntimeError as error:  # Python 3.11 wraps what is raised while a class is made
        if isinstance(error.__cause__, KeyboardInterrupt):
            return 130
        raise


def _run(argv: list[str], started: Callable[[], object] | None) -> int:
    """Run one verb, print help or report bad usage; returns the exit code."""
    from dibs.cli.grammar import parse
    from dibs.cli.say import Voice

    gc.disable()  # nothing that is made here is ever garbage, and a pass over it costs time
    try:
        args = parse(argv)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        gc.freeze()
        gc.enable()
    voice = Voice(args.json, args)
    if started is not None:
        started()
    try:
        run = partial(args.run, voice, args)
        code: int = to_the_end(run) if args.many else run()
        return code
    except DibsError as error:
        from dibs.cli.refusal import report

        return report(voice, error)
