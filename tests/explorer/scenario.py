"""What a scenario is, and what its checks are given.

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

Three rules keep the search sound. An actor's `run` is called many times over, so it makes its own
objects and shares nothing with other actors except through the port. Whatever it does follows
from the answers it got: chance and time come from the port. A check looks at the world, at
`history`'s memory and fresh notes, and keeps nothing of its own.
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
    """What the scheduler did: enough to do it again."""

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
    """Somebody who acts on the directory: one process."""

    name: str
    run: Callable[[SimPort], object]
    host: str = "h1"
    """Actors of one host share its boot-time clock and its `st_dev`."""
    mortal: bool = True
    """A crash can strike it."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How much may go wrong in one run; each is a number of times."""

    crashes: int = 0
    lost: int = 0
    """A change that is done and answered with EIO, or ENOENT (EEXIST for a link)."""
    failed: int = 0
    """A call that is answered with EIO and does nothing."""
    late: int = 0
    """A change that is answered with EIO and lands at any later time, or never."""
    torn: int = 0
    """A listing that misses, doubles or still shows names that changed while it was read."""
    advances: int = 0
    """A pause of everybody: time goes on by one of `advance_by`, in seconds."""
    advance_by: tuple[float, ...] = ()
    steps: int = 0
    """Somebody sets the file system's clock, by one of `step_by` seconds; boot clocks stay."""
    step_by: tuple[float, ...] = ()
    steps_asleep: bool = False
    """Only while everybody sleeps: many steps, and few places for them."""
    total: int | None = None
    """A bound on all of these together, advances apart."""


class History:
    """The part of the past that a check may use; `get` and `set` are part of the state."""

    __slots__ = ("_facts", "_hash", "_results", "_step", "fresh")

    def __init__(self, step: Callable[[], Step], results: Callable[[], dict[str, Outcome]]) -> None:
        self._facts: dict[Any, Any] = {}
        self._hash = 0
        self._step = step
        self._results = results
        self.fresh: tuple[tuple[str, Any], ...] = ()
        """What actors noted in this very step: (actor, fact)."""

    @property
    def step(self) -> Step:
        """The step just taken."""
        return self._step()

    @property
    def results(self) -> dict[str, Outcome]:
        """Of the actors that have ended."""
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
    """Lays out the files and options of a world, and names the actors. Called once."""
    check: Callable[[SimWorld, History], str | None] = _nothing
    """After every step that changed, noted or ended something: what is wrong, if anything.
    A failed `assert` counts too."""
    final: Callable[[SimWorld, History, Mapping[str, Outcome]], str | None] = _nothing
    """The same, once every actor has ended or crashed."""
    faults: Faults = field(default_factory=Faults)
    mode: Literal["merge", "bounded", "random"] = "merge"
    """Every interleaving, equal states merged; every one with at most `preemptions`; or walks."""
    preemptions: int = 3
    allowed: tuple[type[BaseException], ...] = (OSError,)
    """Exceptions that an actor may end with; any other is a violation."""
    strikes: Callable[[str, Call], bool] | None = None
    """Which calls (by actor's name) faults may strike; crashes strike anywhere."""
    max_steps: int = 500
    """A run this long is cut, and the scenario never counts as exhausted."""


class Violation(Exception):
    """An invariant broke; the text is the story that broke it."""

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
        """For `engine.replay`, which does it again."""
        self.trace = trace
        self.cost = cost
        """Preemptions and faults that it took."""
        self.sleeps = sleeps

    def __str__(self) -> str:
        return f"{self.scenario}: {self.message}\n{self.trace}"
