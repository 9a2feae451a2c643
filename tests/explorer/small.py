"""Small scenarios of raw calls, for the tests of the explorer itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .actors import SimPort
from .scenario import Actor, History, Outcome, Scenario
from .simdisk import SimWorld

Run = Callable[[SimPort], object]


def scenario(
    *runs: Run, files: Sequence[str] = (), seen: set[Any] | None = None, **options: Any
) -> Scenario:
    """A scenario of actors a, b, c …; adds each end, (results, files with data), to `seen`."""

    def build(world: SimWorld) -> list[Actor]:
        world.folders("done", ".dibs/journal")
        for path in files:
            world.put(path)
        return [Actor(name, run) for name, run in zip("abcd", runs, strict=False)]

    def final(world: SimWorld, history: History, results: Mapping[str, Outcome]) -> None:
        if seen is not None:
            values = tuple(
                (kind, str(value) if kind == "raised" else value)
                for kind, value in (results[name] for name in sorted(results))
            )
            left = tuple(sorted((path, world.data(path)) for path in world.files()))
            seen.add((values, left))

    return Scenario("test", build, final=final, **options)


def ends(seen: set[Any]) -> set[Any]:
    """The results alone, if there is one actor."""
    return {values[0] for values, _ in seen}


def looks(count: int) -> Run:
    def run(port: SimPort) -> None:
        for _ in range(count):
            port.stat("done")

    return run


def program(operations: Sequence[tuple[Any, ...]]) -> Run:
    def run(port: SimPort) -> object:
        return tuple(attempt(port, operation) for operation in operations)

    return run


def attempt(port: Any, operation: tuple[Any, ...]) -> object:
    port.keeps = True  # the real disk reads the EINVAL of a folder moved into itself as "cannot"
    try:
        result = getattr(port, operation[0])(*operation[1:])
    except OSError as exc:
        return type(exc).__name__, exc.errno
    return tuple(sorted(result)) if isinstance(result, list) else result
