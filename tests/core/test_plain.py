"""Workers that use only `mv`, `echo` and `rm`, on a board of the core."""

import re

import pytest

import dibs
from dibs import cli
from tests.core.shells import (
    CLAIM,
    CLAIM_BY,
    ECHO,
    PAYLOAD,
    PLAIN_TTL,
    RELEASE,
    THEIR_REAPER,
    Shell,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.fast("dibs.files")

FORMS = {
    "seconds and host": ([CLAIM, ECHO], "web-3"),
    "seconds alone": ([CLAIM, "date +%s > task-7.lock"], ""),
    "words": ([CLAIM, 'echo "claim_time=$(date +%s); $(hostname)" > task-7.lock'], "web-3"),
    "host in the name": ([CLAIM_BY], "web-3"),
    "host in the name and in the lock": ([CLAIM_BY, ECHO], "web-3"),
    "no lock": ([CLAIM], ""),
}


@pytest.mark.parametrize(("commands", "owner"), FORMS.values(), ids=FORMS)
def test_a_plain_claim_is_listed_with_its_owner(
    shell: Shell, commands: list[str], owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.sh(*commands)
    cli.main(["-d", str(shell.path), "ls"])
    state, ident, *rest = capsys.readouterr().out.split()
    assert (state, ident) == ("claimed", "task-7")
    priority, beat, age, _ = rest[-4:]
    assert rest[:-4] == ([owner] if owner else [])
    assert (priority, beat) == ("5", "beat")
    assert re.fullmatch(r"\d+s", age)


@pytest.mark.parametrize("commands", [form[0] for form in FORMS.values()], ids=FORMS)
def test_a_stale_plain_claim_is_reaped_to_the_name_that_shells_claim(
    shell: Shell, commands: list[str]
) -> None:
    shell.sh(*commands)
    shell.wait(PLAIN_TTL - 10)
    snapshot = shell.board.snapshot()
    (name,) = snapshot.holders
    assert PLAIN_TTL - 10 <= (snapshot.age(name) or 0) < PLAIN_TTL
    assert not snapshot.stale(name)
    shell.world.advance(11)
    assert shell.board.snapshot().stale(name)
    assert shell.reaped() == ["task-7.available"]
    assert shell.names() == ["task-7.available"]
    assert (shell.path / "task-7.available").read_bytes() == PAYLOAD
    shell.sh(CLAIM, ECHO, host="web-4")
    assert not shell.board.snapshot().stale("task-7.claimed")


@pytest.mark.parametrize("host", ["ci.claimed-boxes.example", "web.free.example", "x.claimed.y"])
def test_a_host_may_have_a_state_word_in_its_name(shell: Shell, host: str) -> None:
    shell.sh(CLAIM_BY, ECHO, host=host)
    shell.wait(PLAIN_TTL - 1)
    shell.sh(ECHO, host=host)
    shell.wait(PLAIN_TTL - 1)
    assert shell.reaped() == []
    assert [entry.owner for entry in shell.board.entries()] == [host]
    assert shell.board.check() == []
    shell.wait(PLAIN_TTL)
    assert shell.reaped() == ["task-7.available"]
    assert shell.names() == ["task-7.available"]


@pytest.mark.parametrize("beat", [": > task-7.lock", "printf 17 > task-7.lock", ECHO])
def test_an_empty_or_torn_lock_counts_as_a_beat(shell: Shell, beat: str) -> None:
    shell.sh(CLAIM, ECHO)
    shell.wait(PLAIN_TTL - 10)
    shell.sh(beat)
    shell.wait(PLAIN_TTL - 10)
    assert shell.reaped() == []
    assert shell.names() == ["task-7.claimed", "task-7.lock"]
    shell.wait(PATIENCE)
    assert shell.reaped() == ["task-7.available"]


def test_a_stamped_task_is_requeued_with_the_same_stamp(shell: Shell) -> None:
    (shell.path / "task-7.available").rename(shell.path / "task-7.f3a1p9.available")
    shell.sh(
        "for f in *.available; do",
        'mv "$f" "${f%.available}.claimed"',
        'echo "$(date +%s) $(hostname)" > "${f%.available}.lock"',
        "done",
    )
    assert shell.names() == ["task-7.f3a1p9.claimed", "task-7.f3a1p9.lock"]
    shell.wait(PLAIN_TTL + 1)
    assert shell.reaped() == ["task-7.f3a1p9.available"]
    assert shell.names() == ["task-7.f3a1p9.available"]


def test_an_id_with_dots_is_requeued_under_its_own_name(shell: Shell) -> None:
    (shell.path / "task-7.available").rename(shell.path / "v1.2.available")
    shell.sh("mv v1.2.available v1.2.claimed", "date +%s > v1.2.lock")
    shell.wait(PLAIN_TTL + 1)
    assert shell.reaped() == ["v1.2.available"]
    assert shell.names() == ["v1.2.available"]


def test_a_plain_task_requeued_too_often_is_parked_with_its_payload(shell: Shell) -> None:
    for _ in range(2):
        shell.expire_once()
        assert shell.names() == ["task-7.available"]
    shell.expire_once()
    (name,) = shell.names()
    assert name.startswith("failed/task-7.f0.dibs-")
    assert (shell.path / name).read_bytes() == PAYLOAD
    assert "requeued too often" in shell.reasons()


def test_a_parked_plain_task_is_requeued_to_the_name_that_shells_claim(shell: Shell) -> None:
    for _ in range(3):
        shell.expire_once()
    shell.board.requeue(shell.names()[0], "mended")
    assert shell.names() == ["task-7.available"]
    shell.sh(CLAIM, ECHO, RELEASE)
    assert shell.names() == []


def test_a_requeued_plain_task_has_all_its_attempts_again(shell: Shell) -> None:
    for _ in range(3):
        shell.expire_once()
    shell.board.requeue(shell.names()[0], "mended")
    shell.expire_once()
    assert shell.names() == ["task-7.available"]


@pytest.mark.parametrize("claim", [CLAIM, CLAIM_BY])
def test_the_operator_releases_exactly_the_plain_claim_on_the_screen(
    shell: Shell, claim: str
) -> None:
    shell.sh(claim, ECHO)
    task = shell.board.force_release(shell.act_name(), "hung")
    assert task.name == "task-7.available"
    assert shell.names() == ["task-7.available"]


def test_a_newer_plain_claim_is_not_the_one_on_the_screen(shell: Shell) -> None:
    shell.sh(CLAIM, ECHO)
    sight = shell.act_name()
    shell.world.advance(1)
    shell.sh(THEIR_REAPER)
    shell.sh(CLAIM, ECHO, host="web-4")
    with pytest.raises(dibs.Changed):
        shell.board.force_release(sight, "hung")
    with pytest.raises(dibs.Changed):
        shell.board.park(sight, "hung")
    assert shell.names() == ["task-7.claimed", "task-7.lock"]


def test_the_operator_parks_a_plain_claim_with_its_payload(shell: Shell) -> None:
    shell.sh(CLAIM, ECHO)
    task = shell.board.park(shell.act_name(), "wrong branch")
    assert task.state == "failed"
    assert shell.names() == [task.name]
    assert (shell.path / task.name).read_bytes() == PAYLOAD


def test_a_lock_without_a_claim_is_removed_when_it_is_older_than_the_ttl(shell: Shell) -> None:
    shell.sh(CLAIM, ECHO, "rm -f task-7.claimed")
    shell.wait(PLAIN_TTL - 10)
    assert shell.board.repair() == []
    assert shell.names() == ["task-7.lock"]
    shell.wait(PATIENCE)
    assert [finding.kind for finding in shell.board.check()] == ["lock"]
    assert shell.board.repair() == []
    assert shell.names() == []


def test_a_worker_that_takes_over_a_dead_shells_task_is_safe_from_that_shell(
    shell: Shell,
) -> None:
    shell.sh(CLAIM, ECHO)
    shell.wait(PLAIN_TTL + 1)
    claim = shell.board.claim(owner="me")
    assert claim is not None
    assert (claim.id, claim.fence) == ("task-7", 1)
    shell.sh(ECHO, RELEASE, THEIR_REAPER.replace("; ", " 2>/dev/null || :; "))
    claim.beat()
    claim.done()
    assert shell.names() == [f"done/{claim.name}"]
    assert (shell.path / "done" / claim.name).read_bytes() == PAYLOAD


def test_a_requeued_stamped_task_is_claimed_and_finished_by_a_shell(shell: Shell) -> None:
    claim = shell.board.claim(owner="me")
    assert claim is not None
    claim.release()
    assert shell.names() == ["task-7.f1.available"]
    shell.sh(
        "for f in *.available; do",
        'mv "$f" "${f%.available}.claimed"',
        'echo "$(date +%s) $(hostname)" > "${f%.available}.lock"',
        'rm -f "${f%.available}.claimed" "${f%.available}.lock"',
        "done",
    )
    assert shell.names() == []
