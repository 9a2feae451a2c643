"""The storm on a board whose workers are shells that use only `mv`, `echo` and `rm`.

    python -m tests.stress.plain_storm [--tasks 3000] [--seed S] [--dir DIR]

Shell loops (`shell/worker.sh`, some of which claim as `.claimed-by-HOST`) and a shell reaper share
the directory with dibs workers, a dibs reaper and an operator. Any worker may be killed or stopped
at any time, also between the `mv` and the `echo`. At the end each task is finished, or is in
`failed/` for a person; none was finished twice without a requeue in between; no live claim was
reaped.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dibs.files.engine import FilesBoard, open_directory
from dibs.model.events import Event
from dibs.model.names import read
from dibs.model.settings import Settings, dump
from tests.stress import audit, crew, ledger, library
from tests.stress import ledger as log
from tests.stress.crew import Scene
from tests.stress.crowd import Chaos, Crowd, blow
from tests.stress.ledger import Line, boottime
from tests.stress.weather import asked, summary, weather

SHELL = Path(__file__).parent / "shell"
REQUEUED = ("reap", "force-release", "requeue", "release", "fail")


class Plan(NamedTuple):
    """The size and the parameters of a storm."""

    tasks: int = 3000
    seconds: float = 120.0
    seed: int = 1
    ttl: int = 2
    gap: float = 0.25
    shells: int = 5
    hardened: int = 2
    slow: float = 0.2
    libraries: int = 2
    """Additional workers on the shell library."""


class Verdict(NamedTuple):
    """The result for every task."""

    tasks: int
    finished: int
    """Finished by a shell, or in `done/`."""
    kept: int
    """Unfinished in `failed/`, for a person."""
    faults: tuple[str, ...]
    figures: dict[str, int]


def shell(script: str, *args: object) -> None:
    """Replace this process with a shell worker or reaper: in dash if it is installed."""
    program = shutil.which("dash") or shutil.which("sh") or "/bin/sh"
    os.execv(program, [program, str(SHELL / script), *map(str, args)])


def storm(where: Path, plan: Plan) -> Verdict:
    """Run a storm in a new directory, and judge the result."""
    board_dir, outside, shell_log = where / "board", where / "outside.log", where / "shell.log"
    (board_dir / ".dibs").mkdir(parents=True)
    settings = Settings(ttl=plan.ttl, plain_ttl=plan.ttl, max_attempts=6, retry=())
    (board_dir / ".dibs/board.toml").write_bytes(dump(settings))
    ids = [f"task-{n:05}" for n in range(plan.tasks)]
    for ident in ids:  # added as shells do
        draft = where / "draft"
        draft.write_bytes(crew.payload_of(ident))
        draft.rename(board_dir / f"{ident}.available")
    board = open_directory(board_dir, create=True)
    for path in (outside, shell_log):
        path.touch()
    with Crowd() as crowd:
        scene = Scene(board_dir, outside, plan.ttl, 0.05, plan.seed, crowd.halt, plan.slow)
        _blow(crowd, scene, shell_log, plan)
    skew = time.time_ns() - boottime()
    left = _cleared(board, plan.ttl)
    verdict = judge(
        board_dir,
        ids,
        board.log.read(),
        ledger.read(outside),
        ledger.read(shell_log),
        plan.ttl,
        skew,
    )
    return verdict._replace(faults=(*verdict.faults, *crowd.failures, *left))


def _blow(crowd: Crowd, scene: Scene, shell_log: Path, plan: Plan) -> None:
    bodies = {}
    for n in range(plan.shells):
        host = f"shell-{n}"
        suffix = f"-by-{host}" if n % 3 == 2 else ""
        words = "words" if n % 2 else ""
        args = (scene.board, shell_log, host, plan.ttl, suffix, words)
        bodies[host] = partial(shell, "worker.sh", *args)
    for n in range(plan.hardened):
        name = f"known-{n}" if n % 2 else f"hidden-{n}"
        bodies[name] = partial(crew.worker, scene, name, bool(n % 2))
    bodies |= library.bodies(scene, plan.libraries)
    bodies["reaper"] = partial(crew.reaper, scene)
    with weather(crowd, scene, "plain storm") as outside:
        crowd.start("operator", partial(crew.operator, scene))
        crowd.start("their reaper", partial(shell, "reaper.sh", scene.board, shell_log, plan.ttl))
        blow(
            crowd,
            Chaos(outside, plan.seed, 3 * plan.ttl),
            bodies,
            lambda: plan.tasks - _open(scene.board),
            plan.tasks,
            seconds=plan.seconds,
            gap=plan.gap,
        )
        for name in crowd.running():
            if "shell" in name or name == "their reaper":
                crowd.end(name)


def _open(board_dir: Path) -> int:
    """The number of tasks that are neither finished nor parked."""
    words = (".available", ".claimed")
    return sum(any(word in name for word in words) for name in os.listdir(board_dir))


def _cleared(board: FilesBoard, ttl: float) -> Iterator[str]:
    """Repair the rest; findings that stay are faults."""
    until = boottime() + int(10 * ttl * 1e9)
    while (
        any(name.endswith(".lock") for name in os.listdir(board.location.where))
        and boottime() < until
    ):
        time.sleep(0.1)  # a lock without a claim is removed when it is older than the ttl
        board.repair()
    board.repair()
    for finding in board.check():
        yield f"check: {finding.kind} {finding.name}: {finding.text}"


def judge(
    where: Path,
    ids: Sequence[str],
    events: Sequence[Event],
    lines: Sequence[Line],
    shells: Sequence[Line],
    ttl: float,
    skew: int,
) -> Verdict:
    """Judge the board after every process has ended.

    The lines of a shell have the time of day, which is `skew` ahead of the boot-time clock.
    """
    places = audit.listing(where)
    hardened = {i for i, names in places.items() if any(n.startswith("done/") for n in names)}
    by_shell = Counter(_ident(line.name) for line in shells if line.word == "done")
    requeued = Counter(e.id for e in events if e.verb in REQUEUED and not _plain(e))
    requeued += Counter(_ident(line.name) for line in shells if line.word == "reap")
    requeued += Counter(_ident(line.name) for line in requeues(lines))
    faults = [
        *(f"{i} is lost" for i in ids if i not in places and i not in by_shell),
        *(f"{i} has two names: {n}" for i, n in places.items() if len(n) > 1),
        *(f"{i} is still open" for i, n in places.items() if "/" not in n[0]),
        *audit.spoilt(where, places),
        *audit.fences(events, lines),
        *live_plain_claims_reaped(lines, shells, ttl, skew),
    ]
    for ident in ids:
        finishes = by_shell[ident] + (ident in hardened)
        if finishes > 1 + requeued[ident]:
            faults.append(f"{ident} was finished {finishes} times, requeued {requeued[ident]}")
    finished = hardened | set(by_shell)
    kept = [i for i in places if i not in finished]
    again = [i for i in finished if by_shell[i] + (i in hardened) > 1]
    return Verdict(
        len(ids),
        len(finished),
        len(kept),
        tuple(faults),
        {
            "finished by shells": len(by_shell),
            "by hardened workers": len(hardened),
            "again after a requeue": len(again),
            "finished and kept for a person": len(finished & places.keys() - hardened),
            "plain claims": sum(line.word == "claim" for line in shells),
            "shells that gave up": sum(line.word == "lost" for line in shells),
            "reaped by the shell reaper": sum(line.word == "reap" for line in shells),
            "reaped plain": sum(_plain(event) for event in events if event.verb == "reap"),
            **audit.figures(events, lines),
        },
    )


def _ident(name: str) -> str:
    """The id in a name without its state word, as a shell records it."""
    return name.partition(".")[0]


def _plain(event: Event) -> bool:
    task = read(event.src)
    return task is not None and task.is_shell_claim


def requeues(lines: Sequence[Line]) -> Iterator[Line]:
    """Renames that requeue a takeover: the journal misses those of a dead janitor."""
    for line in lines:
        if line.word == log.TRY and ".dibs-" in line.name and line.more.endswith(".available"):
            yield line


def live_plain_claims_reaped(
    lines: Sequence[Line], shells: Sequence[Line], ttl: float, skew: int
) -> Iterator[str]:
    """Requeues of plain claims less than a ttl after a beat that was itself in time.

    The requeue is the second rename of a janitor, from the takeover to the available name. A
    worker that claims after it cannot have beaten before. A shell may be stopped between reading
    the clock and its step: a step counts if it was done in time and before the requeue.
    """
    meddler = {line.pid for line in lines if line.word == log.OPERATOR}
    beats: dict[str, list[Line]] = defaultdict(list)
    for line in shells:
        if line.word in ("claim", "beat"):
            beats[_ident(line.name)].append(line)
    for line in requeues(lines):
        if line.pid in meddler:
            continue
        at = line.boot + skew
        last: dict[int, int] = {}
        for beat in sorted(beats[_ident(line.name)], key=lambda beat: beat.boot):
            done = int(beat.more)
            in_time = beat.word == "claim" or done - last.get(beat.pid, 0) < 0.9 * ttl * 1e9
            last[beat.pid] = beat.boot
            age = (at - beat.boot) / 1e9
            if in_time and done <= at and age < audit.NEARLY * ttl:
                yield f"{line.name} was requeued {age:.3f} s after a beat"


def report(verdict: Verdict) -> str:
    """The figures and, in the last line, the verdict."""
    return (
        f"{summary(verdict.faults, verdict.figures)}\n"
        f"{verdict.tasks} tasks: {verdict.finished} finished, {verdict.kept} kept "
        f"for a person, {len(verdict.faults)} faults"
    )


def main() -> int:
    verdict = asked(__doc__, Plan, ("tasks", "seconds", "seed"), storm)
    print(report(verdict))
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
