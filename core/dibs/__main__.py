import signal
import sys

early = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if early:  # until the verb runs, ctrl+c ends the process by the signal
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interruptible() -> None:
    """From now on ctrl+c is an exception, because what has begun needs to be cleaned up."""
    if early:
        signal.signal(signal.SIGINT, signal.default_int_handler)


try:
    from dibs.cli import main

    code = main(sys.argv[1:], interruptible)
except KeyboardInterrupt:  # between two steps: the verbs handle their own
    code = 130
while early:  # the exit of the interpreter would print a traceback as well
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        break
    except KeyboardInterrupt:
        code = 130
raise SystemExit(code)
