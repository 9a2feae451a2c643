"""Tasks and locks as their exact names describe them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

AVAILABLE, CLAIMED, FREE, HELD, DONE, FAILED, LATER, ASKED = (
    "available",
    "claimed",
    "free",
    "held",
    "done",
    "failed",
    "later",
    "asked",
)
STATES = ("stale", CLAIMED, HELD, ASKED, AVAILABLE, LATER, FAILED, FREE, DONE)
"""Every state that operators see, the most urgent first."""
WAITING = (AVAILABLE, LATER)
"""The states of a task that no one holds and that a worker can claim, now or when it is due."""

TAKER = "dibs"
"""The reserved owner of a shell claim that dibs has taken over to requeue it."""

DEFAULT_PRIORITY = 5


class Stamp(NamedTuple):
    """The counters in a name; also its last question and its start, if the name has them.

    >>> claim.task.stamp.fence
    1
    """

    fence: int = 0
    attempts: int = 0
    priority: int = DEFAULT_PRIORITY
    question: int = 0
    """The fence of the claim that asked last; 0 if none did."""
    answer: int = 0
    """Which answer to that question counts; 0 for none."""
    not_before: int = 0
    """When a `later` task is due, in unix seconds on the board's clock; 0 for any other."""


_DEFAULT = Stamp()


class Task(NamedTuple):
    """One task or lock, read from its exact name alone.

    >>> task = board.find("build")[0]
    >>> task.id, task.state, task.priority
    ('build', 'available', 5)
    """

    name: str
    """The exact name on the board, which every act needs; opaque to callers."""
    id: str
    state: str
    fence: int
    attempts: int
    priority: int
    claim: str
    """`<owner>-<nonce>`; empty if no one holds it, and for a shell claim."""
    question: int = 0
    """The fence of the claim that asked last; 0 if none did."""
    answer: int = 0
    """Which answer to that question counts; 0 for none."""
    not_before: int = 0
    """When a `later` task is due, in unix seconds on the board's clock; 0 for any other."""

    @property
    def stamp(self) -> Stamp:
        return Stamp(
            self.fence,
            self.attempts,
            self.priority,
            self.question,
            self.answer,
            self.not_before,
        )

    @property
    def kind(self) -> str:
        return "lock" if self.state in (FREE, HELD) else "task"

    @property
    def live(self) -> bool:
        """Whether a worker holds it."""
        return self.state in (CLAIMED, HELD)

    @property
    def hardened(self) -> bool:
        """Whether dibs made the name: it has a claim or counters, which a shell does not write."""
        return bool(self.claim) or self.stamp != _DEFAULT

    @property
    def is_shell_claim(self) -> bool:
        """Whether it is a claim made with `mv`; its name has no nonce."""
        return self.state == CLAIMED and not self.claim

    @property
    def is_takeover(self) -> bool:
        """Whether it is a shell claim that dibs has taken over to requeue it."""
        return self.state == CLAIMED and self.claim[:-11] == TAKER

    @property
    def owner(self) -> str:
        """The owner in the name, which may be shortened; empty if there is none."""
        if self.claim:
            return self.claim[:-11]
        return self.name.partition(".claimed-by-")[2] if self.is_shell_claim else ""

    @property
    def stem(self) -> str:
        """The name without folder and state word: how a claim is printed."""
        if "/" in self.name:
            return self.name.rpartition("/")[2]
        if self.is_shell_claim:
            return self.name.partition(".claimed-by-")[0].removesuffix(".claimed")
        return self.name.rpartition(".")[0]


def doubles(tasks: Iterable[Task]) -> Iterator[tuple[Task, ...]]:
    """The tasks of each id that has more than one name outside `done/` and `failed/`."""
    by_id: dict[str, list[Task]] = {}
    for task in tasks:
        if task.state not in (DONE, FAILED):
            by_id.setdefault(task.id, []).append(task)
    return (tuple(same) for same in by_id.values() if len(same) > 1)


def describe(tasks: Iterable[Task]) -> str:
    """What has an id now, for an error."""
    shown = [f"{t.name} ({t.state}{f' by {t.owner}' if t.owner else ''})" for t in tasks]
    return f"now it is {', '.join(shown)}" if shown else "nothing has that id now"
