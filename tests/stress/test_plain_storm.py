"""The plain storm's shorter form, and the proof that its detectors ring."""

from pathlib import Path

import pytest

from dibs.journal import Event
from tests.stress import crew, plain_storm
from tests.stress import ledger as log
from tests.stress.ledger import Line
from tests.stress.plain_storm import Plan

TTL = 10.0
TAKE = "a.f0.dibs-0123456789"


def line(word: str, name: str, more: str = "-", *, at: float = 1.0, pid: int = 7) -> Line:
    return Line(word, pid, int(at * 1e9), name, more)


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
HANDED_BACK = line(log.TRY, f"{TAKE}.claimed", "a.available", at=9)


def test_a_task_that_no_shell_finished_and_no_name_carries_is_lost(board_dir: Path) -> None:
    assert verdict(board_dir, [], [line("claim", "a")]).faults == ("a is lost",)


def test_a_task_that_a_shell_finished_is_finished(board_dir: Path) -> None:
    found = verdict(board_dir, [], [line("claim", "a"), DONE])
    assert (found.finished, found.kept, found.faults) == (1, 0, ())


def test_a_task_in_failed_is_kept_for_a_person(board_dir: Path) -> None:
    found = verdict(board_dir, [f"failed/{TAKE}"], [line("claim", "a")])
    assert (found.finished, found.kept, found.faults) == (0, 1, ())


def test_a_task_finished_twice_must_have_been_handed_back(board_dir: Path) -> None:
    (fault,) = verdict(board_dir, [], [DONE, DONE]).faults
    assert "finished 2 times" in fault


def test_a_task_handed_back_may_be_finished_again(board_dir: Path) -> None:
    assert verdict(board_dir, [], [DONE, DONE], [HANDED_BACK]).faults == ()


def test_a_task_still_waiting_at_the_end_is_a_fault(board_dir: Path) -> None:
    assert verdict(board_dir, ["a.available"], []).faults == ("a is still open",)


@pytest.mark.parametrize(
    ("beats", "rings"),
    [
        ([line("claim", "a", at=4)], True),
        ([line("claim", "a", at=1), line("beat", "a", at=4)], True),
        ([line("claim", "a", at=2)], False),
        ([line("claim", "a", at=1), line("beat", "a", at=11.5)], False),
        ([line("claim", "a", at=1), line("claim", "a", at=12.5, pid=8)], False),
    ],
    ids=["claimed", "beaten", "silent", "too late a beat", "claimed anew since"],
)
def test_a_plain_claim_that_beat_in_time_is_not_to_be_reaped(
    board_dir: Path, beats: list[Line], rings: bool
) -> None:
    hand_back = line(log.TRY, f"{TAKE}.claimed", "a.available", at=12, pid=9)
    found = verdict(board_dir, ["failed/" + TAKE], beats, [hand_back])
    assert bool(found.faults) is rings


def test_shells_and_hardened_workers_share_a_board_through_a_storm(tmp_path: Path) -> None:
    found = plain_storm.storm(tmp_path, Plan(tasks=400, seconds=8))
    print(plain_storm.report(found))
    assert found.faults == ()
    assert found.finished + found.kept == found.tasks == 400
    assert found.figures["finished by shells"]
    assert found.figures["by hardened workers"]
    assert found.figures["kills"]
    assert ".library-" in (tmp_path / "outside.log").read_text()
