"""Why tasks failed, as the log has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs.model.undoing import Backwards

FAILURES = ("fail", "reap", "park")
"""The verbs whose reasons say why a task is not done."""
ATTEMPTS_ENDED = (*FAILURES, "done")
"""The verbs after which the reason of an earlier attempt no longer applies."""


def last_reasons(log: Backwards, idents: Iterable[str]) -> dict[str, str]:
    """Why the last attempt of each id failed, expired or was parked; empty if it was done."""
    wanted, found = set(idents), dict[str, str]()
    for event in log.newest_first(verbs=ATTEMPTS_ENDED) if wanted else ():
        if event.id in wanted:
            wanted.discard(event.id)
            found[event.id] = event.reason if event.verb in FAILURES else ""
            if not wanted:
                break
    return found
