"""The simulated disk answers as the real one does."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import engine
from .actors import SimPort
from .scenario import Actor, History, Outcome, Scenario
from .simdisk import SimWorld
from .small import Run, attempt

PATHS = st.sampled_from(
    [
        "a",
        "b",
        "d",
        "d/a",
        "d/e",
        "d/e/a",
        "a/x",
        "none/x",
        "fifo",
        "link",
        "link/x",
        "n" * 256,
        "d/b",
    ]
)
DATA = st.sampled_from([b"", b"one", b"two"])
CALLS = st.one_of(
    st.tuples(
        st.sampled_from(["names", "stat", "unlink", "mkdir", "rmdir", "touch", "sync"]), PATHS
    ),
    st.tuples(st.just("read"), PATHS, st.sampled_from([0, 2, 99]), st.sampled_from([0, 1, 9])),
    st.tuples(st.just("create"), PATHS, DATA),
    st.tuples(st.just("append"), PATHS, DATA),
    st.tuples(st.just("rename"), PATHS, PATHS, st.booleans()),
    st.tuples(st.just("link"), PATHS, PATHS),
)


def lay_out(port: Any) -> None:
    port.mkdir(".dibs")  # other folders are made here before they get their names
    port.mkdir("d")
    port.create("a", b"first")
    port.mkdir("d/e")
    port.create("d/a", b"second")


def essence(result: Any) -> object:
    """A value that is equal for equal simulated and real answers."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], bytes):
        return result[0], essence(result[1])
    if hasattr(result, "mode"):
        return result.regular, result.folder, result.size if result.regular else 0
    return result


def behaviour(port: Any, calls: Sequence[tuple[Any, ...]]) -> list[object]:
    answers = [essence(attempt(port, call)) for call in calls]
    for folder in ("", "d", "d/e"):
        answers.append(attempt(port, ("names", folder)))
    return answers


def simulated(run: Run, lay: Callable[[SimWorld], None] = lambda world: None) -> Any:
    results: list[Any] = []

    def build(world: SimWorld) -> list[Actor]:
        lay(world)
        return [Actor("a", run)]

    def final(world: SimWorld, history: History, found: Mapping[str, Outcome]) -> None:
        results.append(found["a"].value)

    engine.explore(Scenario("alone", build, final=final))
    return results[0]


@settings(max_examples=400)
@given(st.lists(CALLS, min_size=1, max_size=12))
def test_the_simulated_disk_answers_as_the_real_one(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[Any, ...]]
) -> None:
    from dibs.files.disk import Disk

    root = str(tmp_path_factory.mktemp("board"))
    os.mkfifo(f"{root}/fifo")
    os.symlink("nowhere", f"{root}/link")
    disk = Disk(root)
    lay_out(disk)
    real = behaviour(disk, calls)

    def lay(world: SimWorld) -> None:
        world.put("fifo", kind="fifo")
        world.put("link", kind="symlink")

    def run(port: SimPort) -> object:
        lay_out(port)
        return behaviour(port, calls)

    assert simulated(run, lay) == real


def times(port: Any, pause: float) -> list[object]:
    """Which file times each call changes."""
    lay_out(port)
    port.link("a", "b")
    answers: list[object] = []
    watched = ["", "a", "b", "c", "d", "d/a", "d/f"]

    def look() -> list[Any]:
        found: list[Any] = []
        for path in watched[1:]:
            try:
                s = port.stat(path)
            except OSError:
                found.append(None)
            else:
                found.append((s.mtime, s.ctime))
        return found

    for call in (
        ("touch", "a"),
        ("append", "d/a", b"x"),
        ("create", "d/f", b"x"),
        ("rename", "a", "c"),
        ("rename", "d/a", "d/f"),
        ("rename", "b", "c"),
        ("unlink", "b"),
        ("read", "c", 9),
        ("rename", "c", "d/a", True),
        ("sync", "d/a"),
    ):
        before = look()
        port.sleep(pause)
        getattr(port, call[0])(*call[1:])
        answers.append(
            (
                call,
                [
                    (old is None) != (new is None)
                    or (old is not None and [o != n for o, n in zip(old, new, strict=True)])
                    for old, new in zip(before, look(), strict=True)
                ],
            )
        )
    return answers


def test_each_call_changes_the_same_file_times_as_on_the_real_disk(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    from dibs.files.disk import Disk

    disk = Disk(str(tmp_path_factory.mktemp("times")))
    assert simulated(lambda port: times(port, 0.02)) == times(disk, 0.02)
