"""What an engine gives to its callers of one claim or one wait: claims, retries, presence.

An engine's classes match these protocols without importing them. `dibs.board` has the rest.
`BoardReader` and `BoardWriter` are for `dibs.copying` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dibs.model.errors import Held
    from dibs.model.events import Event
    from dibs.model.portable import PortableHead, PortableId
    from dibs.model.questions import Question
    from dibs.model.records import Record
    from dibs.model.task import Task


class Claim(Protocol):
    """One worker's hold on a task or lock, until the worker ends it or the lease expires.

    Every method does what it says or raises. `Lost`: the claim is no longer the caller's.
    `Uncertain`: the board did not answer in time. Both mean: stop working.

    >>> claim = board.claim(owner="web-3", ttl=120)
    >>> claim.beat()
    >>> claim.done().state
    'done'
    """

    def __enter__(self) -> Self:
        """Hold a lock for a `with` block, which releases it; a task is refused."""

    def __exit__(self, *error: object) -> None:
        """Release the lock; if the block failed, its own error is raised."""

    @property
    def task(self) -> Task:
        """The task or lock, with its exact name while claimed.

        >>> claim.task.state
        'claimed'
        """

    @property
    def record(self) -> Record:
        """What the holder wrote about itself.

        >>> claim.record.owner
        'web-3'
        """

    @property
    def name(self) -> str:
        """The exact name, as verbs print and take it: `<id>.<stamp>.<claim>`.

        >>> claim.name.startswith("build.f1.web-3-")
        True
        """

    @property
    def id(self) -> str:
        """The id of the task or lock.

        >>> claim.id
        'build'
        """

    @property
    def fence(self) -> int:
        """A number that grows with every claim of this id; reject writes with a lower one.

        >>> claim.fence
        1
        """

    @property
    def slot(self) -> int:
        """The number of the slot of a lock that was acquired with several; else 1.

        >>> board.acquire("gpu", slots=4).slot in (1, 2, 3, 4)
        True
        """

    @property
    def ttl(self) -> float:
        """The lease: how many seconds the claim lasts without a heartbeat.

        >>> claim.ttl
        120
        """

    @property
    def deadline(self) -> int:
        """When the holder must stop working, on the boot-time clock in nanoseconds.

        0 if another process made the claim; only the board knows then.

        >>> claim.deadline > 0
        True
        """

    @property
    def path(self) -> str | None:
        """The path of the payload; None if it is not a file on this host.

        >>> with open(claim.path, "rb") as file:
        ...     file.read()
        b'what to do'
        """

    def payload(self, limit: int = 1 << 30) -> bytes:
        """The payload, at most `limit` bytes of it.

        >>> claim.payload()
        b'what to do'
        """

    def beat(
        self,
        *,
        ttl: float | None = None,
        metadata: str | None = None,
        note: str | None = None,
    ) -> None:
        """Renew the lease, counted from the start of the call; raises if the call ends too late.

        >>> claim.beat(note="step 1 of 2")
        """

    def note(self, text: str) -> None:
        """Say in one line what the work is doing; the lease is not renewed. "" removes the note.

        >>> claim.note("step 1 of 2")
        """

    def keep_output(self, limit: int) -> OutputKeeper:
        """Where to keep what the work prints, at most `limit` bytes: the beginning and the end.

        >>> claim.keep_output(65_536).keep(b"compiling\\n", 0)
        """

    def verify(self) -> None:
        """Raise unless the claim is still the caller's and its lease has not expired.

        >>> claim.verify()
        """

    def done(self, result: bytes | None = None) -> Task:
        """Commit the finished task, perhaps with a result; returns only if the commit was done.

        A repeat succeeds, but the result of the first commit stays: `Changed` refuses another one.

        >>> claim.done(b"42").state
        'done'
        """

    def fail(self, reason: str = "", *, retry_in: float | None = None) -> Task:
        """Count a failed attempt: requeue the task, or move it to `failed` at the limit.

        It is `later` for the delay of the settings, or for `retry_in` seconds, at most a day.

        >>> claim.fail("no such branch", retry_in=60).state
        'later'
        """

    def release(self, reason: str = "", *, start_in: float = 0.0) -> Task:
        """Requeue the task or free the lock, unchanged; no attempt is counted.

        With `start_in` the task is `later` for that many seconds, at most a day.

        >>> claim.release().state
        'available'
        """

    def confirm(self, *, ttl: float | None = None, metadata: str | None = None) -> None:
        """Beat, and from then on `release_unconfirmed` of this claim does nothing.

        For a program that gives away a claim a second time, because the first answer was lost.

        >>> claim.confirm()
        >>> claim.release_unconfirmed()
        False
        """

    def release_unconfirmed(self, reason: str = "") -> bool:
        """Release the claim if no one has confirmed or beaten it; whether it was released.

        For a program whose answer with this claim was lost, so that no one may know of it. The
        board decides: another program may have found the claim meanwhile, and given it away.

        >>> claim.release_unconfirmed("the client has gone")
        True
        """

    def ask(self, question: str) -> Task:
        """End the claim with a question to a person; no attempt is counted.

        No worker gets the task before it is answered. Asking again with the same claim succeeds.

        >>> claim.ask("which branch?").state
        'asked'
        """

    @property
    def answers(self) -> tuple[Question, ...]:
        """The questions that were asked about this task, oldest first, with their answers.

        >>> claim.answers
        ()
        """


class OutputKeeper(Protocol):
    """Keeps the output of the work on one claim.

    >>> keeper = claim.keep_output(65_536)
    >>> keeper.keep(b"compiling\\n", 0)
    """

    def keep(self, data: bytes, at: int) -> None:
        """Keep the output from offset `at` on; what was skipped before it is a gap.

        >>> claim.keep_output(65_536).keep(b"compiling\\n", 0)
        """


class Retry(Protocol):
    """Decides when the next attempt is due: soon after a change, else about once a second.

    Call `begin` before each attempt, and `held` or `missed` after one that got nothing.

    >>> retry = board.retry()
    >>> retry.begin()
    >>> retry.missed()
    >>> retry.due()
    False
    """

    @property
    def every(self) -> float:
        """How often to call `due`, in seconds.

        >>> board.retry().every
        0.2
        """

    def begin(self) -> None:
        """Note that an attempt begins.

        >>> retry = board.retry()
        >>> retry.begin()
        """

    def held(self, error: Held) -> None:
        """Note that another worker holds it; other changes then do not matter until it lets go.

        >>> retry = board.retry()
        >>> lock = board.acquire("nightly")
        >>> try:
        ...     board.acquire("nightly")
        ... except dibs.Held as held:
        ...     retry.held(held)
        """

    def missed(self) -> None:
        """Note that there was nothing to claim.

        >>> retry = board.retry()
        >>> retry.begin()
        >>> retry.missed()
        """

    def due(self) -> bool:
        """Whether to try again now.

        >>> board.retry().due()
        True
        """


class Presence(Protocol):
    """Shows others that a worker waits for tasks, until it is ended or the worker dies.

    >>> presence = board.presence("web-3")
    >>> board.wait_for(board.claim, 5, presence=presence).id
    'build'
    """

    def keep(self, state: str = "idle") -> None:
        """Call this often while waiting: it costs one touch each ten seconds, and never raises.

        `state` is why the worker waits: `idle`, `paused` or `broken`.

        >>> presence = board.presence("web-3")
        >>> presence.keep("idle")
        """

    def end(self) -> None:
        """The wait is over; a later `keep` begins a new one.

        >>> presence = board.presence("web-3")
        >>> presence.keep()
        >>> presence.end()
        """


class BoardReader(Protocol):
    """Reads a complete board in the portable form, as it was at the first call."""

    @property
    def omitted(self) -> Sequence[str]:
        """What could not be read so far, one line for each kind."""

    def __enter__(self) -> Self:
        """Begin to read."""

    def __exit__(self, *error: object) -> None:
        """Let go of the board."""

    def head(self) -> PortableHead:
        """The settings and the pauses."""

    def ids(self) -> Iterator[PortableId]:
        """Every id that is or was on the board, in the order of `eid`."""

    def events(self) -> Iterator[Event]:
        """Every event, oldest first."""


class BoardWriter(Protocol):
    """Writes a complete board, which is none before it is published."""

    def __enter__(self) -> Self:
        """Reserve the place; `Refused` if another copy to it runs."""

    def __exit__(self, *error: object) -> None:
        """Leave nothing, unless it was published."""

    def begin(self) -> bool:
        """Whether to write; False if there is a board that is not empty."""

    def write(self, board: BoardReader) -> None:
        """Write all of a board."""

    def written(self) -> BoardReader:
        """What was written, or the board that is there, to be compared."""

    def publish(self) -> None:
        """Make it a board, durably and at once."""
