"""Runs scenarios and mutants in a few processes, and prints what was explored."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

from . import engine
from .engine import Figures
from .mutants import MUTANTS
from .scenario import Scenario, Violation
from .scenarios import SCENARIOS

SECONDS = 120.0
FULL_SECONDS = 1800.0
_FOR_MUTANTS = 0.4
"""The share of the time that mutants may use; the rest goes to the scenarios."""
_LEAST = 60.0
"""The processor seconds that each mutant may use, however busy the machine is."""
_FOR_ALL = 0.6
"""The share of its time that a merging search has before random walks take over."""

T = TypeVar("T")


@dataclass
class Explored:
    """The result of one scenario."""

    name: str
    mode: str
    figures: Figures | None
    story: str = ""

    def line(self) -> str:
        done = self.figures
        if done is None:
            return f"{self.name}: VIOLATION"
        text = f"{self.name}: {self.mode}, {done.schedules:,} schedules"
        if done.merged:
            word = "repeated" if self.mode == "random" else "merged"
            text += f", {done.merged:,} {word}"
        if done.covers > done.schedules:
            text += f", covering {_large(done.covers)}"
        if done.cut:
            text += f", {done.cut:,} cut"
        if done.walked:
            text += f", {done.walked:,} extra walks"
        text += f", {done.steps:,} steps, {done.seconds:.1f} s"
        return text + (", exhausted" if done.exhausted else "")


@dataclass
class Tried:
    """The result of one mutant."""

    name: str
    by: str
    message: str
    story: str
    cost: int
    seconds: float

    def line(self) -> str:
        if not self.by:
            return f"mutant {self.name}: NOT CAUGHT in {self.seconds:.1f} s"
        return (
            f"mutant {self.name}: caught in {self.seconds:.1f} s by {self.by} "
            f"(cost {self.cost}): {self.message}"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 if an invariant broke or a mutant was not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.explorer", description=__doc__)
    parser.add_argument("--seconds", type=float, help="total time in seconds")
    parser.add_argument(
        "--full", action="store_true", help=f"run for {FULL_SECONDS:g} s (default: {SECONDS:g})"
    )
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME")
    parser.add_argument("--mutant", action="append", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    seconds = args.seconds or (FULL_SECONDS if args.full else SECONDS)
    every = not args.scenario and not args.mutant
    scenarios = [s.name for s in SCENARIOS if every or _chosen(s.name, args.scenario)]
    mutants = [m.name for m in MUTANTS if every or _chosen(m.name, args.mutant)]
    if not scenarios and not mutants:
        parser.error("no scenario or mutant has this name")
    # Searches that end come first, so that the time they leave goes to the walks.
    random = {s.name for s in SCENARIOS if s.mode == "random"}
    scenarios.sort(key=lambda name: name in random)
    return _run(scenarios, mutants, seconds, args.jobs, args.seed, verbose=bool(args.mutant))


def _run(
    scenarios: list[str], mutants: list[str], seconds: float, jobs: int, seed: int, *, verbose: bool
) -> int:
    began = time.monotonic()
    share = _FOR_MUTANTS if scenarios else 1.0
    caught = schedules = violations = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_settle_in) as pool:

        def tried(result: Tried) -> None:
            nonlocal caught
            caught += bool(result.by)
            print(result.line(), *([result.story] if verbose else []), sep="\n", flush=True)

        def explored(result: Explored) -> None:
            nonlocal schedules, violations
            print(result.line(), flush=True)
            if result.figures is None:
                violations += 1
                print(result.story, flush=True)
            else:
                schedules += result.figures.schedules

        _share_out(pool, try_mutant, mutants, began + share * seconds, jobs, seed, tried, _LEAST)
        _share_out(pool, explore, scenarios, began + seconds, jobs, seed, explored)
    print(
        f"schedules explored {schedules}, violations {violations}, "
        f"mutants caught {caught} of {len(mutants)}",
        flush=True,
    )
    return int(violations > 0 or caught < len(mutants))


def _share_out(
    pool: ProcessPoolExecutor,
    job: Callable[[str, float, int], T],
    names: list[str],
    until: float,
    jobs: int,
    seed: int,
    report: Callable[[T], None],
    least: float = 1.0,
) -> None:
    """Give each name an equal share of the time that is left when its turn comes."""
    waiting = names.copy()
    running: set[Future[T]] = set()
    while waiting or running:
        while waiting and len(running) < jobs:
            left = until - time.monotonic()
            share = max(least, min(left, left * jobs / (len(waiting) + len(running))))
            running.add(pool.submit(job, waiting.pop(0), share, seed))
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            report(future.result())


def explore(name: str, seconds: float, seed: int) -> Explored:
    """Explore one scenario in its own mode."""
    scenario = _named(name)
    try:
        if scenario.mode == "random":
            figures = engine.walk(scenario, seed=seed, seconds=seconds)
        elif scenario.mode == "bounded":
            figures = engine.explore(scenario, seconds=seconds)
        else:
            figures = engine.explore(scenario, seconds=seconds * _FOR_ALL)
            if not figures.exhausted:  # depth first tries early turns last: walk there too
                left = seconds - figures.seconds
                figures.walked = engine.walk(scenario, seed=seed, seconds=left).schedules
    except Violation as found:
        return Explored(name, scenario.mode, None, str(engine.shorten(scenario, found)))
    return Explored(name, scenario.mode, figures)


def try_mutant(name: str, seconds: float, seed: int) -> Tried:
    """Run one mutant against the scenarios that should catch it."""
    mutant = next(m for m in MUTANTS if m.name == name)
    began = time.process_time()
    with mutant.patched():
        for n, by in enumerate(mutant.caught_by):
            left = seconds - (time.process_time() - began)
            try:
                found = engine.hunt(
                    _named(by), seconds=left / (len(mutant.caught_by) - n), seed=seed
                )
            except Violation as at_once:  # before the first step
                found = at_once
            if found is not None:
                took = time.process_time() - began
                return Tried(name, by, found.message, str(found), found.cost, took)
    return Tried(name, "", "", "", 0, time.process_time() - began)


def _named(name: str) -> Scenario:
    return next(s for s in SCENARIOS if s.name == name)


def _chosen(name: str, wanted: list[str]) -> bool:
    return any(part in name for part in wanted)


def _settle_in() -> None:
    """Keep the collector away from the cached behaviour, which lives long and has no garbage."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def _large(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"{count:.1e}"
