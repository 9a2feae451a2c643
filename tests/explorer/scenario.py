"""Defines a scenario, and what its checks can see.

    def build(world: SimWorld) -> list[Actor]:
        world.folders("done", ".dibs/records")
        world.put("t.available")
        return [Actor("ann", lambda port: Board(port).claim("ann")), ...]

    def check(world: SimWorld, history: History) -> str | None:
        for who, fact in history.fresh:          # what actors said with `port.note(fact)`
            if fact[0] == "granted":
                other = history.get(fact, who)   # a memory that is part of the state
                if other != who:
                    return f"{who} and {other} were both granted {fact[1]}"
                history.set(fact, who)
        return None

    SCENARIO = Scenario("two claims", build, check, final, Faults(crashes=1, lost=1))

Three rules keep the search sound. An actor's `run` is called many times, so it makes its own
objects and shares nothing with other actors except through the port. What it does depends only on
the answers it got: chance and time come from the port too. A check reads only the world and
`history`, and keeps no state outside of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .simdisk import SimWorld

if TYPE_CHECKING:
    from .actors import SimPort

Call = tuple[Any, ...]
"""A port call: its name and its arguments."""

RUN, LOSE, FAIL, DELAY, CRASH, LAND, ADVANCE, STEP, END = range(9)


class Choice(NamedTuple):
    """What the scheduler did, with enough data to repeat it."""

    kind: int
    who: int
    extra: Any
    preempts: int


class Outcome(NamedTuple):
    """How an actor ended."""

    kind: Literal["returned", "raised", "crashed"]
    value: Any


class Step(NamedTuple):
    """One line of a trace."""

    actor: str
    call: Call
    result: Any
    fault: str


@dataclass(frozen=True, slots=True)
class Actor:
    """A process that acts on the directory."""

    name: str
    run: Callable[[SimPort], object]
    host: str = "h1"
    """Actors of one host share its boot-time clock and its `st_dev`."""
    mortal: bool = True
    """Whether it can crash."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How often each fault may happen in one run."""

    crashes: int = 0
    lost: int = 0
    """Changes that happen and are answered with EIO, or ENOENT (EEXIST for a link)."""
    failed: int = 0
    """Calls that are answered with EIO and do nothing."""
    late: int = 0
    """Changes that are answered with EIO and land at any later time, or never."""
    torn: int = 0
    """Listings that miss, double or still show names that changed while they were read."""
    advances: int = 0
    """Pauses of all actors: time advances by one of `advance_by`, in seconds."""
    advance_by: tuple[float, ...] = ()
    steps: int = 0
    """Steps of the file system's clock, by one of `step_by` seconds; boot clocks do not step."""
    step_by: tuple[float, ...] = ()
    steps_asleep: bool = False
    """Whether the clock steps only while all actors sleep: many steps, in few places."""
    total: int | None = None
    """A limit on the sum of all these except advances."""


class History:
    """The past that a check may use; what it stores with `set` belongs to the state."""

    __slots__ = ("_facts", "_hash", "_results", "_step", "fresh")

    def __init__(self, step: Callable[[], Step], results: Callable[[], dict[str, Outcome]]) -> None:
        self._facts: dict[Any, Any] = {}
        self._hash = 0
        self._step = step
        self._results = results
        self.fresh: tuple[tuple[str, Any], ...] = ()
        """What actors noted in this step: (actor, fact)."""

    @property
    def step(self) -> Step:
        """The step just taken."""
        return self._step()

    @property
    def results(self) -> dict[str, Outcome]:
        """The outcomes of the actors that have ended."""
        return self._results()

    def get(self, key: Any, default: Any = None) -> Any:
        return self._facts.get(key, default)

    def set(self, key: Any, value: Any = True) -> None:
        """Remember something; both must be hashable."""
        if self._facts.get(key, self) != value:
            self._facts = {**self._facts, key: value}
            self._hash = hash(frozenset(self._facts.items()))

    def __contains__(self, key: Any) -> bool:
        return key in self._facts

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._facts.items())

    def save(self) -> tuple[dict[Any, Any], int]:
        return self._facts, self._hash

    def load(self, saved: tuple[dict[Any, Any], int]) -> None:
        self._facts, self._hash = saved

    @property
    def key(self) -> int:
        return self._hash


def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True)
class Scenario:
    """One small world to explore."""

    name: str
    build: Callable[[SimWorld], Sequence[Actor]]
    """Lays out the files and options of a world, and returns the actors. Called once."""
    check: Callable[[SimWorld, History], str | None] = _nothing
    """Called after every step that changed, noted or ended something; returns what is wrong.
    A failed `assert` counts too."""
    final: Callable[[SimWorld, History, Mapping[str, Outcome]], str | None] = _nothing
    """The same, after every actor ended or crashed."""
    faults: Faults = field(default_factory=Faults)
    mode: Literal["merge", "bounded", "random"] = "merge"
    """All interleavings with equal states merged; those with at most `preemptions`; or walks."""
    preemptions: int = 3
    allowed: tuple[type[BaseException], ...] = (OSError,)
    """The exceptions that an actor may end with; any other is a violation."""
    strikes: Callable[[str, Call], bool] | None = None
    """Which calls (by the actor's name) faults may strike; crashes may strike any call."""
    max_steps: int = 500
    """A run is cut at this length, and the scenario never counts as exhausted."""


class Violation(Exception):
    """An invariant broke; the text is the trace of the run."""

    def __init__(
        self,
        scenario: str,
        message: str,
        choices: tuple[Choice, ...],
        trace: str,
        cost: int,
        sleeps: bool,
    ) -> None:
        super().__init__(scenario, message, choices, trace, cost, sleeps)
        self.scenario = scenario
        self.message = message
        self.choices = choices
        """The choices, for `engine.replay`."""
        self.trace = trace
        self.cost = cost
        """The number of preemptions and faults in it."""
        self.sleeps = sleeps

    def __str__(self) -> str:
        return f"{self.scenario}: {self.message}\n{self.trace}"
