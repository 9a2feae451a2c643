"""How a refusal is told: one line for a person, one object for a script, and the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dibs.cli import mute
from dibs.errors import DibsError, Held

if TYPE_CHECKING:
    from dibs.cli.say import Voice
    from dibs.names import Task


def tell(voice: Voice, error: DibsError) -> int:
    """Say why nothing was done and what is there now."""
    try:
        if voice.json:
            voice.result("", fields(error))
        sys.stdout.flush()
    except OSError:  # the code says it all the same
        mute(1)
    voice.words(str(error))
    return error.exit_code


def fields(error: DibsError) -> dict[str, object]:
    """A refusal as the fields that scripts know; `status` is the kind of refusal."""
    found: dict[str, object] = {"status": status(error), "error": str(error)}
    if isinstance(error, Held):
        found |= {
            "id": error.task.id,
            "claim": _printed(error.task),
            "owner": error.owner,
            "fence": error.task.fence,
            "remaining": round(error.remaining, 3),
            "retry": round(error.retry, 3),
            "metadata": error.metadata,
        }
    now: tuple[Task, ...] | None = getattr(error, "now", None)
    if now is not None:
        found["now"] = [row(task) for task in now]
    return found


def row(task: Task) -> dict[str, object]:
    """What is there now, as one of the rows of `now`."""
    name = _printed(task)
    return {
        "id": task.id,
        "state": task.state,
        "claim": name,
        "owner": task.owner,
        "fence": task.fence,
    }


def _printed(task: Task) -> str:
    """The name to give, as every other object has it."""
    return task.stem if task.live and not task.plain else task.name


def status(error: DibsError) -> str:
    """The one stable word of a refusal: its public type's name, in lower case with dashes."""
    name = next(c.__name__ for c in type(error).__mro__ if c.__module__ == DibsError.__module__)
    return "".join(f"-{c.lower()}" if c.isupper() and n else c.lower() for n, c in enumerate(name))
