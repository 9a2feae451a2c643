"""Tiny claim protocols that show what the engine finds, and how fast."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager

from . import mutant
from .actors import SimPort
from .scenario import Actor, Faults, History, Outcome, Scenario
from .simdisk import SimWorld


def naive(port: SimPort) -> str:
    """Looks, then writes: two can look before either writes."""
    if "owner" in port.names(""):
        return "lost"
    try:
        port.write("owner", port.name.encode())
    except OSError:
        return "unsure"
    port.note("owns")
    return "owns"


def careful(port: SimPort) -> str:
    """Renames to a unique name; after any error it looks at both names."""
    mine = f"t.{port.name}-{port.nonce()}.claimed"
    try:
        port.rename("t.available", mine)
    except OSError:
        # The source first: otherwise a late rename could land between the looks, and the actor
        # would see neither its name nor the source.
        if there(port, "t.available"):
            return "unsure"
        if not there(port, mine):
            return "lost"
    port.note("owns")
    try:
        port.rename(mine, f"done/{mine}")
    except OSError:
        return "unsure"
    return "done"


def there(port: SimPort, path: str) -> bool:
    try:
        port.stat(path)
    except FileNotFoundError:
        return False
    return True


def trusting(port: SimPort) -> str:
    """Trusts the error: it forgets a claim whose reply was lost."""
    mine = f"t.{port.name}-{port.nonce()}.claimed"
    try:
        port.rename("t.available", mine)
    except OSError:
        return "lost"
    port.note("owns")
    return "owns"


def lay(world: SimWorld) -> None:
    world.folders("done")
    world.put("t.available")


def one_owner(world: SimWorld, history: History) -> str | None:
    for who, _ in history.fresh:
        other = history.get("owner", who)
        if other != who:
            return f"{other} and {who} both own it"
        history.set("owner", who)
    return None


def one_file(world: SimWorld, history: History) -> str | None:
    found = [path for path in world.files() if path.rpartition("/")[2].startswith("t.")]
    return None if len(found) == 1 else f"the task has {len(found)} files"


def both(world: SimWorld, history: History) -> str | None:
    return one_owner(world, history) or one_file(world, history)


def accounted(world: SimWorld, history: History, results: Mapping[str, Outcome]) -> str | None:
    """Check that no claim exists whose owner returned that it lost."""
    for path in world.files():
        owner = path.removeprefix("t.").partition("-")[0]
        if path.endswith(".claimed") and owner in results and results[owner].value == "lost":
            return f"{owner} returned that it lost, and holds {path}"
    return None


def crowd(world: SimWorld) -> list[Actor]:
    lay(world)
    return [Actor(name, careful) for name in ("ann", "bob", "cyd")]


def pair(world: SimWorld) -> list[Actor]:
    lay(world)
    return [Actor(name, careful) for name in ("ann", "bob")]


PAIR = Scenario(
    "toy: two claim by rename",
    pair,
    both,
    accounted,
    Faults(crashes=1, lost=1, late=1, total=2),
)
CROWD = Scenario(
    "toy: three claim by rename",
    crowd,
    both,
    accounted,
    Faults(crashes=1, lost=1),
    mode="random",
)


def trusted() -> AbstractContextManager[None]:
    """Make the worker skip the look at its own name after an error."""
    return mutant.swapped(sys.modules[__name__], "careful", trusting)
