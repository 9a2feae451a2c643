"""What only some boards can do; callers check for it instead of guessing from a type."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """A feature that only some boards have.

    >>> dibs.Capability.PROBE in board.capabilities
    True
    """

    PROBE = "probe"
    """`probe` tests whether the storage can carry a board."""
    CHECK = "check"
    """`check` and `repair` find and repair what crashes, copies and people leave behind."""
    SHELL_CLAIMS = "shell-claims"
    """A shell without dibs can claim with `mv`; the name of such a claim has no nonce."""
    LONG_PAYLOADS = "long-payloads"
    """A payload may be longer than one request of HTTP."""
    LOCAL_EVIDENCE = "local-evidence"
    """Whether a process has exited is what this host sees, and not what a server's host sees."""
