"""The console script `dibs`; it imports nothing heavy, so that a worker's verb starts fast."""

import gc
import signal
import sys

# Until the verb runs, ctrl+c ends the process by the signal: an exception in the middle of an
# import or of argparse becomes another one there. An ignored signal stays ignored.
_early = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _early:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Open the dashboard or run a verb; returns the exit code."""
    try:
        code = _run()
    except KeyboardInterrupt:  # between two steps: the verbs handle their own
        code = 130
    while _early:  # the exit of the interpreter would print a traceback as well
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            break
        except KeyboardInterrupt:
            code = 130
    return code


def _interruptible() -> None:
    """From now on ctrl+c is an exception, because what has begun needs to be cleaned up."""
    if _early:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run() -> int:
    gc.disable()  # nothing that the imports make is garbage; what runs next enables it again
    from dibs.cli import main as run
    from dibs.cli.grammar import leading, looks
    from dibs.cli.stdio import open_stdio

    if None in (sys.stdin, sys.stdout, sys.stderr):
        open_stdio()
    argv = sys.argv[1:]
    if looks(argv):
        from dibs_tui.command_line import show_board

        gc.enable()
        return show_board(argv, _interruptible)
    code = run(argv, _interruptible)
    rest = leading(argv)[1]
    if code == 0 and rest[:1] == ["paths"] and not {"-h", "--help"} & set(rest):
        from dibs_tui.command_line import paths

        return paths(argv)
    return code


if __name__ == "__main__":
    sys.exit(main())
