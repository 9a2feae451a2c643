"""The short form of the plain storm, and the proof that its detectors ring."""

from pathlib import Path

import pytest

from dibs.model.events import Event
from tests.stress import crew, plain_storm
from tests.stress import ledger as log
from tests.stress.ledger import Line
from tests.stress.plain_storm import Plan

TTL = 10.0
TAKE = "a.f0.dibs-0123456789"


def line(word: str, name: str, more: str = "-", *, at: float = 1.0, pid: int = 7) -> Line:
    return Line(word, pid, int(at * 1e9), name, more)


def step(word: str, *, at: float, done: float = 0.0, pid: int = 7) -> Line:
    """The line of a shell for a step that began and ended at these times."""
    return line(word, "a", str(int((done or at) * 1e9)), at=at, pid=pid)


def verdict(
    where: Path,
    left: list[str],
    shells: list[Line],
    lines: list[Line] | None = None,
    events: list[Event] | None = None,
) -> plain_storm.Verdict:
    for folder in ("done", "failed"):
        (where / folder).mkdir()
    for name in left:
        (where / name).write_bytes(crew.payload_of("a"))
    return plain_storm.judge(where, ["a"], events or [], lines or [], shells, TTL, skew=0)


DONE = line("done", "a")
REQUEUED = line(log.TRY, f"{TAKE}.claimed", "a.available", at=9)


def test_an_unfinished_task_without_a_name_is_lost(board_dir: Path) -> None:
    assert verdict(board_dir, [], [line("claim", "a")]).faults == ("a is lost",)


def test_a_task_that_a_shell_finished_is_finished(board_dir: Path) -> None:
    found = verdict(board_dir, [], [line("claim", "a"), DONE])
    assert (found.finished, found.kept, found.faults) == (1, 0, ())


def test_a_task_in_failed_is_kept_for_a_person(board_dir: Path) -> None:
    found = verdict(board_dir, [f"failed/{TAKE}"], [line("claim", "a")])
    assert (found.finished, found.kept, found.faults) == (0, 1, ())


def test_a_task_finished_twice_without_a_requeue_is_a_fault(board_dir: Path) -> None:
    (fault,) = verdict(board_dir, [], [DONE, DONE]).faults
    assert "finished 2 times" in fault


def test_a_requeued_task_may_be_finished_again(board_dir: Path) -> None:
    assert verdict(board_dir, [], [DONE, DONE], [REQUEUED]).faults == ()


def test_a_task_still_available_at_the_end_is_a_fault(board_dir: Path) -> None:
    assert verdict(board_dir, ["a.available"], []).faults == ("a is still open",)


@pytest.mark.parametrize(
    ("beats", "rings"),
    [
        ([step("claim", at=4)], True),
        ([step("claim", at=1), step("beat", at=4)], True),
        ([step("claim", at=2)], False),
        ([step("claim", at=1), step("beat", at=11.5)], False),
        ([step("claim", at=1), step("beat", at=4, done=12.5)], False),
        ([step("claim", at=1), step("claim", at=12.5, pid=8)], False),
    ],
    ids=["claimed", "beaten", "expired", "late beat", "stopped before the beat", "claimed again"],
)
def test_a_reap_of_a_plain_claim_that_beat_in_time_is_a_fault(
    board_dir: Path, beats: list[Line], rings: bool
) -> None:
    requeue = line(log.TRY, f"{TAKE}.claimed", "a.available", at=12, pid=9)
    found = verdict(board_dir, ["failed/" + TAKE], beats, [requeue])
    assert bool(found.faults) is rings


def test_shells_and_dibs_workers_share_a_board_in_a_storm(tmp_path: Path) -> None:
    found = plain_storm.storm(tmp_path, Plan(tasks=400, seconds=8))
    print(plain_storm.report(found))
    assert found.faults == ()
    assert found.finished + found.kept == found.tasks == 400
    assert found.figures["finished by shells"]
    assert found.figures["by hardened workers"]
    assert found.figures["kills"]
    assert ".library-" in (tmp_path / "outside.log").read_text()
