"""What must hold of a board after a verb was broken, and after the next janitor ran."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import dibs
from dibs.files.board_files import ASIDE, NEW, RECORDS
from dibs.model import names
from dibs.model.task import AVAILABLE, DONE, FAILED, Task
from tests.stress.syscalls.boards import PAYLOADS
from tests.stress.syscalls.later import later
from tests.stress.syscalls.scenarios import AGED, Scenario
from tests.stress.syscalls.tracer import Run

_match_draft = re.compile(r"([A-Za-z0-9_=-]+)\.(task|lock)\.[0-9A-F]{10}").fullmatch
_VISITS = 3
"""How often a janitor runs, each time after all claims have expired again."""
_MANY_LINES = ("reap",)
"""Verbs that print one line for each claim that they could not requeue."""
_IN_WORDS = ("purge", "check", "forget")
"""Verbs that print what they did, without a name."""


def at_once(scenario: Scenario, verb: str, path: Path, run: Run) -> Iterator[str]:
    """Everything that is wrong right after the verb."""
    lines = run.err.splitlines()
    if run.code is not None and run.code not in ((0, 1, 6) if verb == "check" else range(6)):
        yield f"exit {run.code} is not documented"
    if any(not line.startswith("dibs: ") for line in lines):
        yield "stderr has more than the lines of dibs"
    if len(lines) > 1 and verb not in _MANY_LINES:
        yield f"{len(lines)} lines on stderr"
    if run.code not in (None, 0, 6) and not lines:
        yield "refused without a message"
    for line in run.out.splitlines() if run.code == 0 else ():
        if verb not in _IN_WORDS and not _stands(path, line):
            yield f"printed {line}, which does not exist"
    state = state_of(path, "t")
    steps = {scenario.before, *scenario.between}
    after = scenario.before if _took_another(verb, run) else scenario.after
    if run.code == 0 and state != after and not (verb == "reap" and lines):
        yield f"reported success, but t is {state or 'nowhere'}"
    if run.code in (1, 2, 3, 4) and state not in steps and "the step is done" not in run.err:
        yield f"refused, but t is {state or 'nowhere'}"
    if state not in {*steps, scenario.after}:
        yield f"t is {state or 'nowhere'}, which is no step of this verb"
    if "no longer yours" in run.err and state == scenario.before:
        yield "reported lost for a claim that still exists"
    yield from _payloads(scenario, path, run)


def afterwards(scenario: Scenario, path: Path, run: Run) -> Iterator[str]:
    """Everything that is wrong after all claims expired and a janitor and a fresh worker ran."""
    before = state_of(path, "t")
    for visit in range(_VISITS):
        board = later(str(path), (3 + visit) * AGED)
        board.repair()
        left = [f for f in board.check() if f.kind not in scenario.person]
        if not left:
            break
    for finding in left:
        yield f"not repaired: {finding.kind} {finding.name}: {finding.text}"
    yield from _litter(path)
    yield from _payloads(scenario, path, run)
    state = state_of(path, "t")
    if before.startswith(("done", "failed")) and state != before:
        yield f"{before} became {state or 'nothing'} by a repair"
    if run.code in (1, 2, 3, 4) and not scenario.before and state.startswith("available"):
        yield "refused definitely, and done later nevertheless"
    yield from _worked_off(path)
    if _fence(state_of(path, "t")) < _fence(before):
        yield f"the fence decreased: {before}, then {state_of(path, 't')}"


def state_of(path: Path, ident: str) -> str:
    """Every name of an id as text, with the drafts of a task; those of a lock have no payload."""
    found = [
        f"{task.state} f{task.fence}a{task.attempts}p{task.priority}{' taken' * task.is_takeover}"
        for task in _tasks(path)
        if task.id == ident
    ]
    return " + ".join(sorted([*found, *("draft" for _ in _drafts(path, ident, "task"))]))


def _tasks(path: Path) -> Iterator[Task]:
    free = [f".dibs/free/{folder}" for folder in _entries(path / ".dibs/free")]
    for folder in ("", DONE, FAILED, *free):
        for name in os.listdir(path / folder):
            task = names.read_any(f"{folder}/{name}" if folder else name)
            if task is not None:
                yield task


def _entries(folder: Path) -> list[str]:
    """The entries of a folder that may not exist yet."""
    return os.listdir(folder) if folder.exists() else []


def _drafts(path: Path, ident: str, kind: str) -> Iterator[Path]:
    folder = path / ".dibs/new"
    for name in os.listdir(folder):
        m = _match_draft(name)
        if m is not None and m.groups() == (ident, kind):
            yield folder / name


def _payloads(scenario: Scenario, path: Path, run: Run) -> Iterator[str]:
    """Check that each payload is in one place, and complete wherever a worker could find it."""
    for ident in ("t", *scenario.others):
        published = [task for task in _tasks(path) if task.id == ident]
        is_lock = ident == "t" and scenario.is_lock
        drafts = list(_drafts(path, ident, "task"))
        places = len(published) + len(drafts)
        added = ident != "t" or (run.code == 0 if is_lock else run.code == 0 or scenario.before)
        if places > 1 or (not places and added and not (ident == "t" and scenario.removes)):
            yield f"{ident} is in {places} places"
        wanted = b"" if is_lock else PAYLOADS[ident]
        for task in published:
            if (path / task.name).read_bytes() != wanted:
                yield f"the payload in {task.name} differs from what was added"
        if not published and added and drafts and drafts[0].read_bytes() != wanted:
            yield f"the payload in {drafts[0].name} differs from what was added"


def _litter(path: Path) -> Iterator[str]:
    for folder in (RECORDS, NEW, ASIDE):
        for name in os.listdir(path / folder):
            yield f"litter: {folder}/{re.sub(r'[0-9A-F]{10}', 'NONCE', name)}"
    for name in os.listdir(path / ".dibs/witness"):
        if "." in name:
            yield "litter: a half-written witness"


def _worked_off(path: Path) -> Iterator[str]:
    """Check that a fresh worker claims every available task, sees each payload and leaves none."""
    board = dibs.open(path)
    waiting = {task.id for task in _tasks(path) if task.state == AVAILABLE}
    while (claim := board.claim(owner="fresh")) is not None:
        if claim.id in PAYLOADS and claim.payload() != PAYLOADS[claim.id]:
            yield f"a fresh worker found another payload in {claim.name}"
        waiting.discard(claim.id)
        claim.done()
    if waiting:
        yield f"a fresh worker could not take {sorted(waiting)}"
    for task in _tasks(path):
        if task.kind == "lock":
            board.acquire(task.id, owner="fresh").release()
        elif task.state not in (DONE, FAILED):
            yield f"{task.name} still exists after all tasks are done"


def _stands(path: Path, line: str) -> bool:
    return any((path / f"{line}{word}").exists() for word in ("", ".claimed", ".held"))


def _took_another(verb: str, run: Run) -> bool:
    """Whether a claim skipped the task that the disk refused, and took the next one."""
    return verb == "claim" and run.out.startswith("other.")


def _fence(state: str) -> int:
    return max((int(fence) for fence in re.findall(r" f([0-9]+)", state)), default=0)
