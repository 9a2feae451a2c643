"""The console script `dibs`: a worker's verb must start fast, so nothing heavy is imported here."""

import sys

from dibs.cli import main as run
from dibs.cli import open_stdio
from dibs.cli.grammar import leading, looks


def main() -> int:
    """Open the dashboard, or hand the command line to the core's verbs."""
    open_stdio()
    argv = sys.argv[1:]
    if looks(argv):
        from dibs_tui.looking import look

        return look(argv)
    code = run(argv)
    if code == 0 and leading(argv)[1][:1] == ["paths"]:
        from dibs_tui.looking import paths

        return paths(argv)
    return code


if __name__ == "__main__":
    sys.exit(main())
