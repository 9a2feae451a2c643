"""Breaks every call of every verb, and reports what was wrong."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.stress.syscalls import judge
from tests.stress.syscalls.scenarios import BY_NAME, SCENARIOS, Scenario
from tests.stress.syscalls.tracer import (
    DEAD,
    ERRORS,
    KILL,
    TWICE,
    Call,
    Fault,
    Run,
    Untraceable,
    faults_at,
    run,
)

_SLICE = 60
_TRIES = 4
"""How often a run is retried that made other calls than its trace, as on a busy machine."""


class Break(NamedTuple):
    """One call of one verb, and the fault that replaces it."""

    at: int
    fault: Fault


class Trouble(NamedTuple):
    """One thing that is wrong."""

    scenario: str
    fault: str
    call: str
    what: str
    said: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.fault} at {self.call}\n    {self.what}\n    {self.said}"


class Result(NamedTuple):
    """The result of a series of broken runs."""

    runs: int
    troubles: list[Trouble]


class Stage:
    """A folder where one scenario runs repeatedly."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.folder = folder
        self._boards = 0
        self.calls = self._trace()

    def play(self, faults: Sequence[str] = ()) -> tuple[Path, str, Run]:
        """Run the verb on a new board."""
        path = self.folder / f"{self._boards:05}"
        self._boards += 1
        verb = self.scenario.prepare(path)
        return path, verb[0], run(path, verb, self.scenario.late, faults)

    def broken(self, what: Break) -> list[Trouble]:
        """Everything that is wrong with the verb when one call is broken.

        A run that missed the call proves nothing: it is retried with a fresh trace. If every run
        misses, that is a trouble of this case.
        """
        for _ in range(_TRIES):
            try:
                return [*self._broken(what)]
            except Untraceable as error:
                missed = str(error)
                self.calls = self._trace()
        return [untried(self.scenario.name, missed, what)]

    def _broken(self, what: Break) -> Iterator[Trouble]:
        """Run the verb with one call broken; judge the board at once and after the next janitor."""
        if what.at >= len(self.calls):
            raise Untraceable(f"there are {len(self.calls)} calls now")
        path, verb, done = self.play(faults_at(self.calls, what.at, what.fault))
        call = self._the_injected(what, done)
        wrongs = [*judge.at_once(self.scenario, verb, path, done)]
        try:
            wrongs += judge.afterwards(self.scenario, path, done)
        except Exception as error:
            wrongs.append(f"no worker can continue with this board: {error!r}")
        said = f"exit {done.code}: {_last_words(done.err or done.out)}"
        for wrong in wrongs:
            yield Trouble(self.scenario.name, what.fault.name, call.text, wrong, said)
        shutil.rmtree(path)

    def _trace(self) -> list[Call]:
        """The calls of the unbroken verb, on which two successive runs must agree."""
        calls = self._unbroken()
        for _ in range(_TRIES):
            before, calls = calls, self._unbroken()
            if [(c.number, c.same) for c in before] == [(c.number, c.same) for c in calls]:
                return calls
        raise Untraceable(f"{self.scenario.name} makes different calls each time: {calls}")

    def _unbroken(self) -> list[Call]:
        path, verb, done = self.play()
        wrongs = [*judge.at_once(self.scenario, verb, path, done)]
        if done.code != 0 or wrongs:
            raise RuntimeError(
                f"{self.scenario.name} fails unbroken: {done.code} {done.err} {wrongs}"
            )
        shutil.rmtree(path)
        return done.calls

    def _the_injected(self, what: Break, done: Run) -> Call:
        """The broken call, checked to be the intended one and the only one."""
        meant = self.calls[what.at]
        places = [n for n, call in enumerate(done.calls) if call.injected]
        before = [c.same for c in self.calls[: what.at]], [c.same for c in done.calls[: what.at]]
        if not places or places[0] != what.at or before[0] != before[1]:
            raise Untraceable(f"{self.scenario.name}: {what} missed {meant}: {done}")
        if len(places) > 1 and what.fault.times == 1:
            raise Untraceable(f"{self.scenario.name}: {what} hit {len(places)} calls: {done}")
        if done.calls[what.at].same != meant.same:
            raise Untraceable(f"{self.scenario.name}: {what} hit {done.calls[what.at]}: {meant}")
        if (done.code is None) != (what.fault == KILL):
            raise Untraceable(f"{self.scenario.name}: {what} ended with exit {done.code}: {done}")
        return done.calls[what.at]


def untried(name: str, why: str, what: Break | None = None) -> Trouble:
    """The trouble of a case that proved nothing: it must fail too, or it would go unnoticed."""
    fault, call = (what.fault.name, f"call {what.at}") if what else ("no fault", "no call")
    return Trouble(name, fault, call, f"NOT TRIED: {why}", f"{_TRIES} tries")


def _last_words(text: str) -> str:
    """The message of a verb; of a traceback only its origin."""
    lines = text.strip().splitlines()
    if len(lines) < 4:
        return "; ".join(lines)
    places = [line.strip() for line in lines if "/core/dibs/" in line]
    return "; ".join([*places[-3:], lines[-1]])


def breaks(calls: Sequence[Call], *, full: bool, seed: int) -> list[Break]:
    """The faults to try: with `full` every fault at every call.

    Otherwise one kill for each state that the verb's changes leave on the disk (a kill between two
    looks leaves the same state as the next kill), and one error at each call, in turn.
    """
    errors = (*ERRORS, *TWICE, *DEAD)
    if full:
        return [Break(at, fault) for at in range(len(calls)) for fault in (KILL, *errors)]
    last = {sum(call.changes for call in calls[:at]): at for at in range(len(calls))}
    kills = [Break(at, KILL) for at in last.values()]
    turns = [Break(at, errors[(at + seed) % len(errors)]) for at in range(len(calls))]
    return kills + turns


def run_all(names: Sequence[str], *, full: bool, workers: int = 2) -> Result:
    """Break every verb, with the faults spread over several processes."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        recorded = list(pool.map(record, names))
        parts = [
            (name, chosen[at : at + _SLICE])
            for seed, (name, (calls, _)) in enumerate(zip(names, recorded, strict=True))
            for chosen in [breaks(calls, full=full, seed=seed)]
            for at in range(0, len(chosen), _SLICE)
        ]
        results = list(pool.map(run_part, *zip(*parts, strict=True))) if parts else []
    troubles = [trouble for _, found in recorded for trouble in found]
    troubles += [trouble for result in results for trouble in result.troubles]
    return Result(sum(result.runs for result in results), troubles)


def record(name: str) -> tuple[list[Call], list[Trouble]]:
    """The calls that a verb makes on its board, or why they are unknown."""
    try:
        with _Scratch() as folder:
            return Stage(BY_NAME[name], folder).calls, []
    except Exception:  # as text: a pool hangs on an error that it cannot unpickle
        return [], [untried(name, traceback.format_exc())]


def run_part(name: str, chosen: Sequence[Break]) -> Result:
    """Try some of the faults of one verb."""
    try:
        with _Scratch() as folder:
            stage = Stage(BY_NAME[name], folder)
            troubles = [trouble for what in chosen for trouble in stage.broken(what)]
    except Exception:
        return Result(0, [untried(name, traceback.format_exc())])
    return Result(len(chosen), troubles)


class _Scratch:
    """A folder in memory, if possible: thousands of boards are made."""

    def __enter__(self) -> Path:
        ram = "/dev/shm"
        self._path = tempfile.mkdtemp(dir=ram if os.access(ram, os.W_OK) else None)
        # Otherwise argparse looks for translations and asks for the terminal's size for each word.
        os.environ |= {"LANGUAGE": "C", "COLUMNS": "80", "LINES": "24"}
        import tomllib  # noqa: F401  # so that no verb imports it while it is traced

        return Path(self._path)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path)


def everything() -> list[str]:
    return [scenario.name for scenario in SCENARIOS]
