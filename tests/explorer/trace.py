"""The text of a run, for a person to follow."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any

from dibs.files.port import Stat

from .scenario import (
    ADVANCE,
    CRASH,
    DELAY,
    END,
    FAIL,
    LAND,
    LOSE,
    RUN,
    STEP,
    Actor,
    Choice,
    Outcome,
    Step,
)
from .simdisk import Err, Looked
from .simtree import EPOCH, SECOND, Half, SimTree

LOST = "done, but the reply was lost"
LANDED = "a call that was answered EIO lands"
_FAULTS = {
    RUN: "",
    LOSE: LOST,
    FAIL: "not done",
    DELAY: "not done yet",
    CRASH: "crashes before this call",
    LAND: LANDED,
    ADVANCE: "time passes",
    STEP: "the clock is set",
    END: "pending calls are dropped",
}

TakenChoice = tuple[Choice, Any, Any]


def step_of(actors: Sequence[Actor], taken: TakenChoice) -> Step:
    (kind, who, extra, _), call, result = taken
    fault = _FAULTS[kind]
    if kind == RUN and extra is not None:
        fault = "torn listing"
    if who < 0:
        name = call[0] if kind == LAND else ""
        return Step(name, call[1:] if kind == LAND else (), result if call else extra, fault)
    return Step(actors[who].name, call, result, fault)


def trace_text(
    actors: Sequence[Actor],
    trail: Sequence[TakenChoice],
    world: SimTree,
    results: Mapping[str, Outcome],
) -> str:
    """The numbered steps of a run, and what it left behind."""
    width = max(len(actor.name) for actor in actors)
    lines = []
    for n, taken in enumerate(trail, 1):
        (kind, _, extra, preempts), _, _ = taken
        who, call, result, fault = step_of(actors, taken)
        if kind in (ADVANCE, STEP):
            lines.append(f"{n:4}  {'-':{width}}  {fault}: {extra / SECOND:+g} s")
            continue
        if kind == END:
            lines.append(f"{n:4}  {'-':{width}}  {fault}")
            continue
        arrow = "" if kind == CRASH else f" -> {_result(result)}"
        aside = [fault] if fault else []
        if preempts:
            aside.append("preempts")
        lines.append(
            f"{n:4}  {who:{width}}  {_call(call)}{arrow}"
            + (f"   [{'; '.join(aside)}]" if aside else "")
        )
    lines.extend(f"      {name} {kind} {value!r}" for name, (kind, value) in results.items())
    left = ", ".join(sorted(world.files())) or "nothing"
    lines.append(f"      left on the disk: {left}")
    return "\n".join(lines)


def _call(call: tuple[Any, ...]) -> str:
    if call[0] == "rename" and len(call) == 4:
        call = (*call[:3], *(["keep"] if call[3] else []))
    return f"{call[0]}({', '.join(_short(arg) for arg in call[1:])})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _result(result: Any) -> str:
    if isinstance(result, Err):
        return errno.errorcode.get(result.code, str(result.code))
    if isinstance(result, Half):
        return "opened, not yet written"
    if isinstance(result, Looked):
        return "looked: nothing in the way"
    if isinstance(result, Stat):
        mtime, ctime = ((t - EPOCH) / SECOND for t in (result.mtime, result.ctime))
        return f"ino {result.ino}, {result.size} B, mtime {mtime:g}, ctime {ctime:g}"
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Stat):
        return f"{_short(result[0])}, {_result(result[1])}"
    return "ok" if result is None else _short(list(result) if isinstance(result, tuple) else result)
