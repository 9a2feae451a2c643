"""How `dibs run` finds all processes of a claim, and checks other processes only once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dibs.host import boottime
from dibs.model.sample import SECOND
from dibs.run import group
from dibs.run.group import Ending, Work, look
from tests.stress.running import Site, alive, ended, site, until

MANY = 40


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes whose environment was read."""
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


def claim(ident: str) -> str:
    """A claim that no other run of these tests on this machine looks for."""
    return f"{ident}.f1.x-{os.getpid():010X}"


def sleeper(**marks: str) -> subprocess.Popen[bytes]:
    """A process of a separate session with these marks."""
    return subprocess.Popen(["sleep", "60"], env=os.environ | marks, start_new_session=True)


def since_now() -> int:
    """A start time that is older than all later processes."""
    now = group._ticks()
    until(lambda: group._ticks() > now + 1)
    return group._ticks()


def test_a_process_older_than_the_run_is_checked_once(
    checked: list[int], sleepers: list[int]
) -> None:
    work = Work(claim("a"), since_now())
    assert look(work).members == []
    assert set(sleepers) <= set(checked)
    checked.clear()
    assert look(work).members == []
    assert not set(sleepers) & set(checked)


def test_a_younger_unmarked_process_is_checked_until_its_program_runs(checked: list[int]) -> None:
    work = Work(claim("a"), since_now())
    with sleeper() as stranger:
        assert look(work).members == []
        checked.clear()
        assert look(work).members == []
        assert stranger.pid in checked, "it may be about to start its program"

        def settled() -> bool:
            checked.clear()
            assert look(work).members == []
            return stranger.pid not in checked

        until(settled)
        stranger.kill()


def test_another_process_with_a_known_number_is_checked(
    checked: list[int], sleepers: list[int]
) -> None:
    work = Work(claim("a"), since_now())
    look(work)
    for pid in sleepers[:3]:
        group._strangers._known[str(pid)] += 1  # as if of the process that had the number before
    checked.clear()
    look(work)
    assert set(checked) & set(sleepers) == set(sleepers[:3])


def test_a_process_of_one_claim_is_checked_for_every_other(checked: list[int]) -> None:
    since = since_now()
    first, second = Work(claim("a"), since), Work(claim("b"), since)
    with (
        sleeper(DIBS_CLAIM=second.claim) as marked,
        sleeper(DIBS_CLAIM=claim("c"), DIBS_WITHIN=second.claim) as within,
    ):
        both = [marked.pid, within.pid]
        until(lambda: Path(f"/proc/{within.pid}/comm").read_text() == "sleep\n")
        old = group._ticks() + group._SETTLED * group._TICKS
        until(lambda: group._ticks() > old)
        assert look(first).members == []
        assert look(first).members == []
        assert sorted(look(second).members) == sorted(both)
        for process in (marked, within):
            process.kill()


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The processes that look as in the middle of `exec`, where no test can hold one."""
    found: set[int] = set()
    stat, environment = group._stat, group._environment

    def emptied(pid: int | str) -> list[bytes]:
        fields = stat(pid)
        if pid in found:
            fields[group._ENV_START] = fields[group._ENV_END] = b"0"
        return fields

    monkeypatch.setattr(group, "_stat", emptied)
    monkeypatch.setattr(
        group, "_environment", lambda p, s: b"" if p in found else environment(p, s)
    )
    monkeypatch.setattr(group, "_strangers", group._Strangers())
    return found


@pytest.mark.fast("dibs.run")
def test_a_process_that_is_starting_a_program_is_waited_for_and_ended(starting: set[int]) -> None:
    work = Work(claim("a"), since_now())
    with sleeper(DIBS_CLAIM=work.claim) as left:
        starting.add(left.pid)
        ending = Ending(work, boottime() + SECOND // 5)
        assert not any(ending.over() for _ in range(5))
        starting.clear()
        until(ending.over)
        assert left.wait(0) == -signal.SIGKILL


def test_a_process_that_starts_a_program_without_end_delays_the_end_for_a_limited_time(
    starting: set[int],
) -> None:
    work = Work(claim("a"), since_now())
    with sleeper() as stranger:
        until(lambda: Path(f"/proc/{stranger.pid}/comm").read_text() == "sleep\n")
        starting.add(stranger.pid)
        ending = Ending(work, boottime())
        assert not any(ending.over() for _ in range(5))
        until(ending.over)
        assert stranger.poll() is None
        stranger.kill()


def test_a_program_without_an_environment_does_not_delay_the_end() -> None:
    work = Work(claim("a"), since_now())
    with subprocess.Popen(["sleep", "60"], env={}, start_new_session=True) as stranger:
        until(lambda: Path(f"/proc/{stranger.pid}/comm").read_text() == "sleep\n")
        until(lambda: stranger.pid not in look(work).starting)
        assert not group._is_starting(group._stat(stranger.pid))
        stranger.kill()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        yield found


def test_each_task_of_a_loop_ends_its_leftover_processes_even_with_a_filled_cache(
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
