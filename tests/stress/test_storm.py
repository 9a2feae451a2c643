"""The short form of the storm, and the proof that its detectors ring."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from dibs.model.events import Event
from tests.stress import audit, crew, ledger, storm
from tests.stress import ledger as log
from tests.stress.ledger import Ledger, Line
from tests.stress.storm import Plan

TTL = 10.0
FIRST, SECOND = "a.f1.me-0123456789", "a.f2.you-0123456789"
CLAIMED = f"{FIRST}.claimed"


def event(verb: str, src: str, dst: str) -> Event:
    return Event(1.0, verb, "a", src, dst, "me@host")


def line(word: str, name: str, more: str = "-", *, at: float = 1.0, pid: int = 7) -> Line:
    return Line(word, pid, int(at * 1e9), name, more)


def faults(
    where: Path, ended: Iterable[str], events: Iterable[Event], lines: Iterable[Line]
) -> list[str]:
    """The faults that the audit finds with these files, one id and these sources."""
    for folder in ("done", "failed"):
        (where / folder).mkdir()
    for name in ended:
        (where / name).write_bytes(crew.payload_of("a"))
    return list(audit.judge(where, ["a"], list(events), list(lines), TTL).faults)


COMMIT = [line(log.LIVE, FIRST), line(log.INTENT, FIRST), line(log.DONE, FIRST)]
REAP = event("reap", CLAIMED, "a.f1a1.available")


def tried(at: float) -> Line:
    return line(log.TRY, REAP.src, REAP.dst, at=at, pid=9)


RINGS = {
    "a task is gone": ([], [], [], "is lost"),
    "two names": (["done/" + FIRST, "a.available"], [], COMMIT, "has two names"),
    "two commits that exist": (["done/" + FIRST, "done/" + SECOND], [], COMMIT, "committed twice"),
    "two commits in the journal": (
        ["done/" + FIRST],
        [event("done", "", "done/" + FIRST), event("done", "", "done/" + SECOND)],
        COMMIT,
        "committed twice",
    ),
    "two workers that rely on one fence": (
        ["done/" + FIRST],
        [],
        [*COMMIT, line(log.DONE, SECOND)],
        "committed twice",
    ),
    "a reported commit that does not exist": (
        ["a.available"],
        [],
        COMMIT,
        "reported done, and is not",
    ),
    "reported lost, and its commit exists": (
        ["done/" + FIRST],
        [],
        [*COMMIT[:2], line(log.LOST, FIRST)],
        "while its commit exists",
    ),
    "a commit that no worker tried": (["done/" + FIRST], [], COMMIT[:1], "no worker tried"),
    "a commit without a result for its worker": (
        ["done/" + FIRST],
        [],
        COMMIT[:2],
        "got no result",
    ),
    "a commit that vanished": (
        ["a.available"],
        [],
        COMMIT[:2],
        "its worker lives, and got no result",
    ),
    "a fence granted twice": (
        ["done/" + FIRST],
        [event("claim", "a.available", "a.f1.you-0123456789.claimed")],
        COMMIT,
        "was granted to",
    ),
    "a fence that went back": (
        ["done/" + FIRST],
        [],
        [line(log.LIVE, SECOND), line(log.TRY, "a.available", CLAIMED), *COMMIT],
        "began after",
    ),
    "claimed again after the commit": (
        ["done/" + FIRST],
        [],
        [*COMMIT, line(log.LIVE, SECOND, at=2)],
        "was claimed again since",
    ),
    "two endings": (
        ["done/" + FIRST],
        [event("done", CLAIMED, "done/" + FIRST), event("release", CLAIMED, "a.f1.available")],
        COMMIT,
        " became ",
    ),
    "a live claim reaped": (
        ["a.f1a1.available"],
        [REAP],
        [line(log.LIVE, FIRST, at=1), line(log.LIVE, FIRST, at=4), tried(13.8)],
        "9.800 s after a good beat",
    ),
    "a fresh claim reaped before its worker reported it": (
        ["a.f1a1.available"],
        [REAP],
        [line(log.TRY, "a.available", CLAIMED, at=4), tried(5)],
        "1.000 s after a good beat",
    ),
    "reaped by no known process": (["a.f1a1.available"], [REAP], [], "reaped by no known process"),
}


@pytest.mark.parametrize(("ended", "events", "lines", "words"), RINGS.values(), ids=RINGS)
def test_the_audit_rings(
    board_dir: Path, ended: list[str], events: list[Event], lines: list[Line], words: str
) -> None:
    assert any(words in fault for fault in faults(board_dir, ended, events, lines))


def test_the_audit_rings_for_the_payload_of_another_task(board_dir: Path) -> None:
    (board_dir / "a.available").write_bytes(crew.payload_of("b"))
    assert any("holds" in fault for fault in faults(board_dir, [], [], []))


@pytest.mark.parametrize(
    ("ended", "events", "lines"),
    [
        (["done/" + FIRST], [event("done", CLAIMED, "done/" + FIRST)], COMMIT),
        (["a.f1a1.available"], [REAP, REAP], [line(log.LIVE, FIRST, at=4), tried(14)]),
        (
            ["a.f1a1.available"],
            [REAP],
            [line(log.LIVE, FIRST, at=4), line(log.TRY, REAP.src, REAP.dst, at=5), tried(14)],
        ),
        (["done/" + FIRST], [], [*COMMIT[:2], line(log.KILLED, "-")]),
        (
            ["a.f2a1.available"],
            [],
            [
                line(log.TRY, "a.available", CLAIMED, at=2),
                line(log.LIVE, FIRST, at=2),
                line(log.LIVE, SECOND, at=1),
            ],
        ),
    ],
    ids=[
        "a commit",
        "a claim reaped after its ttl, reported twice",
        "failed by its holder, who was killed before it was done, and reaped",
        "killed before it got a result",
        "a claim whose worker counts from before its look",
    ],
)
def test_the_audit_accepts_what_may_happen(
    board_dir: Path, ended: list[str], events: list[Event], lines: list[Line]
) -> None:
    assert faults(board_dir, ended, events, lines) == []


@pytest.mark.parametrize(("dead_at", "rings"), [(4.5, False), (5.5, True)])
def test_a_known_process_is_reaped_at_once_only_after_its_death(
    board_dir: Path, dead_at: float, rings: bool
) -> None:
    stem = "a.f1.known-1-0123456789"
    reap = event("reap", f"{stem}.claimed", "a.f1a1.available")
    lines = [
        line(log.LIVE, stem, at=4),
        line(log.KILLED, "-", at=dead_at),
        line(log.TRY, reap.src, reap.dst, at=5, pid=9),
    ]
    assert bool(faults(board_dir, ["a.f1a1.available"], [reap], lines)) is rings


def test_the_outside_log_is_read_in_the_order_of_its_lines(tmp_path: Path) -> None:
    outside = Ledger(tmp_path / "log")
    outside.write(log.LIVE, FIRST, boot=5)
    outside.write(log.TRY, CLAIMED, "a.available", boot=6, pid=9)
    outside.close()
    first, second = ledger.read(tmp_path / "log")
    assert (first.word, first.boot, first.name) == (log.LIVE, 5, FIRST)
    assert second == Line(log.TRY, 9, 6, CLAIMED, "a.available")


def test_a_storm_loses_nothing_commits_nothing_twice_and_reaps_no_live_claim(
    tmp_path: Path,
) -> None:
    plan = Plan(tasks=500, seconds=12, ttl=1.0, gap=0.15, long=0.08, shells=2)
    verdict = storm.storm(tmp_path, plan)
    print(storm.report(verdict))
    assert verdict.faults == ()
    assert verdict.done == verdict.tasks == 500
    assert verdict.figures["kills"]
    assert verdict.figures["stops"]
    assert verdict.figures["reap"]
    assert any(".library-" in name for name in os.listdir(tmp_path / "board/done"))
