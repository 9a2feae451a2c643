import sys

from dibs.cli import main

raise SystemExit(main(sys.argv[1:]))
