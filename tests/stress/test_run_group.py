"""How `dibs run` finds the processes of a claim: all of them, and strangers asked only once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dibs.run import group
from dibs.run.group import Work, members
from tests.stress.running import Site, alive, ended, site, until

MANY = 40


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were asked what they are."""
    found: list[int] = []
    stat = group._stat

    def noted(pid: int | str) -> list[bytes]:
        if isinstance(pid, int):
            found.append(pid)
        return stat(pid)

    monkeypatch.setattr(group, "_stat", noted)
    monkeypatch.setattr(group, "_strangers", group._Strangers())
    return found


@pytest.fixture
def sleepers() -> Iterator[list[int]]:
    """Processes that have nothing to do with any claim."""
    with ExitStack() as stack:
        started = [stack.enter_context(subprocess.Popen(["sleep", "60"])) for _ in range(MANY)]
        yield [process.pid for process in started]
        for process in started:
            process.kill()


def sleeper(**marks: str) -> subprocess.Popen[bytes]:
    """A process of a separate session with these marks."""
    return subprocess.Popen(["sleep", "60"], env=os.environ | marks, start_new_session=True)


def since_now() -> int:
    """A moment after which everything is younger."""
    now = group._ticks()
    until(lambda: group._ticks() > now + 1)
    return group._ticks()


def test_whoever_is_older_than_the_run_is_asked_once(asked: list[int], sleepers: list[int]) -> None:
    work = Work("a.f1.x-0123456789", since_now())
    assert members(work) == []
    assert set(sleepers) <= set(asked)
    asked.clear()
    assert members(work) == []
    assert not set(sleepers) & set(asked)


def test_whoever_is_younger_and_unmarked_is_asked_once_it_has_settled(asked: list[int]) -> None:
    work = Work("a.f1.x-0123456789", since_now())
    with sleeper() as stranger:
        assert members(work) == []
        asked.clear()
        assert members(work) == []
        assert stranger.pid in asked, "it may be about to begin its program"

        def settled() -> bool:
            asked.clear()
            assert members(work) == []
            return stranger.pid not in asked

        until(settled)
        stranger.kill()


def test_another_process_with_a_strangers_number_is_asked(
    asked: list[int], sleepers: list[int]
) -> None:
    work = Work("a.f1.x-0123456789", since_now())
    members(work)
    for pid in sleepers[:3]:
        group._strangers._known[str(pid)] += 1  # as of the process that had it before
    asked.clear()
    members(work)
    assert set(asked) & set(sleepers) == set(sleepers[:3])


def test_a_process_of_one_claim_is_a_stranger_to_no_other(asked: list[int]) -> None:
    since = since_now()
    first, second = Work("a.f1.x-0123456789", since), Work("b.f1.x-0123456789", since)
    with (
        sleeper(DIBS_CLAIM=second.claim) as marked,
        sleeper(DIBS_CLAIM="c.f1.x-0123456789", DIBS_WITHIN=second.claim) as within,
    ):
        both = [marked.pid, within.pid]
        until(lambda: Path(f"/proc/{within.pid}/comm").read_text() == "sleep\n")
        old = group._ticks() + group._SETTLED * group._TICKS
        until(lambda: group._ticks() > old)
        assert members(first) == []
        assert members(first) == []
        assert sorted(members(second)) == sorted(both)
        for process in (marked, within):
            process.kill()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        yield found


def test_each_task_of_a_loop_ends_what_it_left_though_strangers_are_known_by_then(
    place: Site,
) -> None:
    names = "abc"
    for name in names:
        place.board.add(name)
    program = (
        "ident = os.environ['DIBS_ID']\n"
        "if os.fork():\n"
        "    while not os.path.exists(f'{notes}/{ident}'): time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "os.setsid()\nnote(ident)\nwhile True: time.sleep(60)"
    )
    run = place.run("--loop", *place.python(program))
    for name in names:
        left = place.pid(name)
        until(lambda name=name: place.state(name).state == "done")  # type: ignore[misc]
        assert not alive(left)
    ended(run, 0)
