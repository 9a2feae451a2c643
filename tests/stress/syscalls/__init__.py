"""Every system call of every verb, broken in turn: see `python -m tests.stress.syscalls --help`."""
