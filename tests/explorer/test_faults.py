"""The faults of the simulated disk have the effects that the real ones have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from . import engine
from .actors import SimPort
from .scenario import Actor, Faults, History, Outcome, Scenario, Violation
from .simdisk import SimWorld
from .small import attempt, ends, looks, program, scenario

pytestmark = pytest.mark.fast("tests.explorer")


def three_files(port: SimPort) -> str:
    for path in ("p", "q", "r"):
        port.create(path, b"")
    return "end"


@pytest.mark.parametrize("merge", [True, False])
def test_a_crash_is_tried_at_every_call(merge: bool) -> None:
    seen: set[Any] = set()
    engine.explore(scenario(three_files, seen=seen, faults=Faults(crashes=1)), merge=merge)
    left = {tuple(path for path, _ in files) for _, files in seen}
    assert left == {(), ("p",), ("p", "q"), ("p", "q", "r")}


def test_a_crashed_actor_does_nothing_more() -> None:
    def tidy(port: SimPort) -> None:
        try:
            port.create("p", b"")
            port.create("q", b"")
        except BaseException:
            port.unlink("p")
            raise
        finally:
            port.create("z", b"")

    seen: set[Any] = set()
    engine.explore(scenario(tidy, seen=seen, faults=Faults(crashes=1)))
    left = {tuple(path for path, _ in files) for _, files in seen}
    assert left == {(), ("p",), ("p", "q"), ("p", "q", "z")}


def test_a_new_file_is_empty_until_its_write_and_stays_empty_if_the_writer_dies() -> None:
    def reader(port: SimPort) -> object:
        return attempt(port, ("read", "p", 9))

    seen: set[Any] = set()
    engine.explore(
        scenario(
            lambda port: port.create("p", b"text"), reader, seen=seen, faults=Faults(crashes=1)
        )
    )
    read = {values[1][1][0] for values, _ in seen if values[1][0] == "returned"}
    assert read == {"FileNotFoundError", b"", b"text"}
    assert (("p", b""),) in {files for _, files in seen}


def test_a_lost_reply_follows_a_change_and_a_failed_call_changes_nothing() -> None:
    def mover(port: SimPort) -> object:
        return attempt(port, ("rename", "x", "y"))

    seen: set[Any] = set()
    engine.explore(scenario(mover, files=["x"], seen=seen, faults=Faults(lost=1)))
    outcomes = {(values[0][1], files[0][0]) for values, files in seen}
    assert outcomes == {(None, "y"), (("FileNotFoundError", 2), "y"), (("OSError", 5), "y")}
    seen.clear()
    engine.explore(scenario(mover, files=["x"], seen=seen, faults=Faults(failed=1)))
    outcomes = {(values[0][1], files[0][0]) for values, files in seen}
    assert outcomes == {(None, "y"), (("OSError", 5), "x")}


def test_a_link_that_was_made_can_be_answered_with_eexist() -> None:
    seen: set[Any] = set()
    linker = program([("link", "x", "y")])
    engine.explore(scenario(linker, files=["x"], seen=seen, faults=Faults(lost=1)))
    assert ("returned", (("FileExistsError", 17),)) in ends(seen)


def test_a_rename_answered_eio_lands_after_the_look_or_never() -> None:
    def mover(port: SimPort) -> object:
        outcome = attempt(port, ("rename", "x", "y"))
        return outcome, tuple(name for name in port.names("") if name in "xy")

    seen: set[Any] = set()
    engine.explore(scenario(mover, files=["x"], seen=seen, faults=Faults(late=1)))
    eio = ("OSError", 5)
    outcomes = {(values[0][1], files[0][0]) for values, files in seen}
    assert outcomes == {
        ((None, ("y",)), "y"),
        ((eio, ("x",)), "x"),  # never
        ((eio, ("x",)), "y"),  # after the look
        ((eio, ("y",)), "y"),  # before it
    }


@pytest.mark.parametrize(
    ("torn", "expected"),
    [(0, {("x",), ("y",)}), (1, {("x",), ("y",), (), ("x", "y")})],
)
def test_a_listing_misses_or_doubles_a_name_that_is_renamed_meanwhile(
    torn: int, expected: set[tuple[str, ...]]
) -> None:
    def lister(port: SimPort) -> object:
        return tuple(name for name in port.names("") if name in "xy")

    seen: set[Any] = set()
    mover = program([("rename", "x", "y")])
    engine.explore(scenario(lister, mover, files=["x"], seen=seen, faults=Faults(torn=torn)))
    assert {values[0][1] for values, _ in seen} == expected


def test_faults_strike_only_the_calls_that_the_scenario_allows() -> None:
    seen: set[Any] = set()
    crowd = scenario(
        program([("touch", "x"), ("stat", "done")]),
        files=["x"],
        seen=seen,
        faults=Faults(failed=2),
        strikes=lambda who, call: call[0] == "stat",
    )
    engine.explore(crowd)
    assert all(values[0] is None for _, values in ends(seen))


# -- time ----------------------------------------------------------------------------------------


def test_time_advances_between_any_two_calls_and_a_step_moves_only_the_clock_of_the_disk() -> None:
    def watcher(port: SimPort) -> object:
        boot = port.boottime()
        port.touch("x")
        disk = port.stat("x").mtime
        port.touch("x")
        return (port.boottime() - boot) // 10**9, (port.stat("x").mtime - disk) // 10**9

    for faults, expected in (
        (Faults(advances=1, advance_by=(5,)), {(0, 0), (5, 5), (5, 0)}),
        (Faults(steps=1, step_by=(-7, 90)), {(0, 0), (0, -7), (0, 90)}),
    ):
        seen: set[Any] = set()
        engine.explore(scenario(watcher, files=["x"], seen=seen, faults=faults))
        assert {value for _, value in ends(seen)} == expected


def test_sleep_moves_time_and_lets_others_run_without_a_preemption() -> None:
    def sleeper(port: SimPort) -> object:
        began = port.boottime()
        port.sleep(2)
        return (port.boottime() - began) / 10**9

    def clock(port: SimPort) -> object:
        began = port.boottime()
        port.stat("done")
        return (port.boottime() - began) / 10**9

    seen: set[Any] = set()
    engine.explore(scenario(sleeper, clock, seen=seen))
    assert {tuple(v for _, v in values) for values, _ in seen} == {(2.0, 0.0), (2.0, 2.0)}
    bounded = engine.explore(scenario(sleeper, looks(1)), merge=False, preemptions=0)
    assert bounded.schedules > 2


def test_journal_lines_and_syncs_are_no_scheduling_points() -> None:
    def writer(port: SimPort) -> None:
        port.append(".dibs/journal/j", b"line")
        port.stat("done")
        port.sync("done")
        port.append(".dibs/journal/j", b"line")

    lines: set[int] = set()

    def final(world: SimWorld, history: History, results: Mapping[str, Outcome]) -> None:
        lines.add(len(world.journal))

    crowd = dataclasses.replace(scenario(writer, writer), final=final)
    assert engine.explore(crowd, merge=False).schedules == 2
    assert lines == {4}


# -- the file system -----------------------------------------------------------------------------


def test_without_noreplace_a_rename_looks_first_and_can_be_overtaken() -> None:
    def build(world: SimWorld) -> list[Actor]:
        world.noreplace = False
        world.put("x")
        return [
            Actor("a", program([("rename", "x", "y", True)])),
            Actor("b", program([("create", "y", b"")])),
        ]

    lost = Scenario(
        "overtaken", build, final=lambda w, h, r: None if len(w.files()) == 2 else "one is lost"
    )
    with pytest.raises(Violation, match="one is lost"):
        engine.explore(lost)


def test_inode_numbers_are_reused_on_a_file_system_that_reuses_them() -> None:
    def run(port: SimPort) -> object:
        first = port.stat("x").ino
        port.unlink("x")
        port.create("y", b"")
        return port.stat("y").ino == first

    for reuses in (False, True):

        def build(world: SimWorld, reuses: bool = reuses) -> list[Actor]:
            world.reuses_inodes = reuses
            world.put("x")
            return [Actor("a", run)]

        scenario = Scenario("inodes", build, final=lambda w, h, r: str(r["a"].value))
        with pytest.raises(Violation, match=str(reuses)):
            engine.explore(scenario)
