"""Races of shell workers and other janitors with the requeue of a plain claim."""

import pytest

from tests.core.shells import (
    CLAIM,
    CLAIM_BY,
    ECHO,
    PAYLOAD,
    PLAIN_TTL,
    RELEASE,
    THEIR_REAPER,
    Died,
    Shell,
    at,
    die,
)


@pytest.mark.parametrize("hooks", ["before", "after"])
@pytest.mark.parametrize("claim", [CLAIM, CLAIM_BY])
def test_a_shell_worker_that_beats_during_the_takeover_keeps_its_claim(
    shell: Shell, claim: str, hooks: str
) -> None:
    shell.sh(claim, ECHO)
    shell.wait(PLAIN_TTL + 1)
    name = "task-7.claimed" if claim == CLAIM else "task-7.claimed-by-web-3"
    getattr(shell.port, hooks)["rename"] = at(name, lambda: shell.sh(ECHO))
    assert shell.reaped() == []
    assert shell.names() == [name, "task-7.lock"]
    assert shell.records() == []
    shell.sh("grep -q web-3 task-7.lock")


def test_a_shell_worker_that_writes_its_first_lock_during_the_takeover_keeps_its_claim(
    shell: Shell,
) -> None:
    shell.sh(CLAIM)
    shell.wait(PLAIN_TTL + 1)
    shell.port.after["rename"] = at("task-7.claimed", lambda: shell.sh(ECHO))
    assert shell.reaped() == []
    assert shell.names() == ["task-7.claimed", "task-7.lock"]


def test_a_shell_worker_that_finishes_before_the_takeover_leaves_nothing_behind(
    shell: Shell,
) -> None:
    shell.sh(CLAIM, ECHO)
    shell.wait(PLAIN_TTL + 1)
    shell.port.before["rename"] = at("task-7.claimed", lambda: shell.sh(RELEASE))
    assert shell.reaped() == []
    assert shell.names() == []
    assert shell.records() == []


@pytest.mark.parametrize("command", [RELEASE, THEIR_REAPER.replace("; ", " 2>/dev/null || :; ")])
def test_a_lock_that_vanishes_during_the_takeover_parks_the_task_for_a_person(
    shell: Shell, command: str
) -> None:
    shell.sh(CLAIM, ECHO)
    shell.wait(PLAIN_TTL + 1)
    shell.port.after["rename"] = at("task-7.claimed", lambda: shell.sh(command))
    shell.board.reap()
    (name,) = shell.names()
    assert name.startswith("failed/")
    assert (shell.path / name).read_bytes() == PAYLOAD
    assert any("it is unknown whether" in reason for reason in shell.reasons())


def test_a_task_added_during_the_takeover_is_not_overwritten(shell: Shell) -> None:
    shell.sh(CLAIM, ECHO)
    shell.wait(PLAIN_TTL + 1)
    shell.port.after["rename"] = at("task-7.claimed", lambda: shell.sh("echo b > task-7.available"))
    shell.board.reap()
    parked, added = shell.names()
    assert parked.startswith("failed/")
    assert added == "task-7.available"
    assert (shell.path / parked).read_bytes() == PAYLOAD
    assert (shell.path / added).read_bytes() == b"b\n"


@pytest.mark.parametrize(
    ("lock", "last"),
    [([ECHO], "task-7.claimed"), ([ECHO], "task-7.lock"), ([], "task-7.claimed")],
)
def test_another_janitor_finishes_the_takeover_of_a_dead_one_to_the_bare_name(
    shell: Shell, lock: list[str], last: str
) -> None:
    shell.sh(CLAIM, *lock)
    shell.wait(PLAIN_TTL + 1)
    shell.port.after["rename"] = at(last, die)
    with pytest.raises(Died):
        shell.board.reap()
    assert any(name.startswith("task-7.f0.dibs-") for name in shell.names())
    other, _ = shell.another()
    other.reap()
    assert any(name.startswith("task-7.f0.dibs-") for name in shell.names()), "it may be alive"
    shell.world.advance(shell.board.settings.ttl + 1)
    assert [task.name for task in other.reap().tasks] == ["task-7.available"]
    assert shell.names() == ["task-7.available"]
    assert shell.records() == []
    assert other.repair() == []


def test_two_janitors_requeue_a_plain_claim_once(shell: Shell) -> None:
    shell.sh(CLAIM, ECHO)
    shell.wait(PLAIN_TTL + 1)
    other, _ = shell.another()

    def overtake() -> None:
        assert other.reap().tasks
        shell.sh(CLAIM, ECHO, host="web-4")

    shell.port.before["rename"] = at("task-7.claimed", overtake)
    assert shell.reaped() == []
    assert shell.names() == ["task-7.claimed", "task-7.lock"]
    shell.sh("grep -q web-4 task-7.lock")
    assert shell.board.snapshot().counts()["claimed"] == 1


def test_a_lock_that_its_worker_removes_during_a_repair_is_no_error(shell: Shell) -> None:
    shell.sh(CLAIM, ECHO, "rm -f task-7.claimed")
    shell.wait(PLAIN_TTL + 1)
    looks: list[str] = []

    def look(path: str) -> None:
        looks.append(path)
        if looks.count("task-7.lock") == 2:
            (shell.path / "task-7.lock").unlink(missing_ok=True)

    shell.port.before["stat"] = look
    assert shell.board.repair() == []
    assert shell.names() == []


def test_check_leaves_the_lock_of_a_takeover_alone(shell: Shell) -> None:
    shell.sh(CLAIM, ECHO)
    shell.wait(PLAIN_TTL + 1)
    other, _ = shell.another()

    def call() -> None:
        other.repair()

    shell.port.after["rename"] = at("task-7.claimed", call)
    assert shell.reaped() == ["task-7.available"]
