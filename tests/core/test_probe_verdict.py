"""Tables of a probe's findings and their verdicts, without a disk."""

from __future__ import annotations

import errno

import pytest

from dibs.files.mounts import Mount
from dibs.files.probing.abilities import (
    Names,
    Times,
    entered,
    grain,
    lagged,
    named,
    on_mount,
    raced,
    refused,
    synced,
    timed,
)
from dibs.files.probing.races import Race
from dibs.model.fitness import BAD, GOOD, NOTE, Ability, trouble, verdict

pytestmark = pytest.mark.fast("dibs.files.probing")

SECOND = 1_000_000_000
MS = SECOND // 1000
EXT4 = Mount("ext4", "/dev/vda", False, False, "/")
SSHFS = Mount("fuse.sshfs", "host:/x", True, False, "/x")
SOUND = Race(200, 100, 100)
STEADY = Times(tick=4 * MS, skew=0, apart=0, torn=0, beats=True, rename_moves_ctime=True)
FREE = Names(215, cases=True, forms=True, raw=True)


def good(ability: str = "rename", least_ttl: float = 0.0) -> Ability:
    return Ability(ability, GOOD, "well", {}, least_ttl)


@pytest.mark.parametrize(
    ("lines", "status", "least_ttl", "text"),
    [
        ([], "fine", 1, "fine"),
        ([good()], "fine", 1, "fine"),
        ([good(), Ability("link", NOTE, "none")], "fine", 1, "fine"),
        ([good(least_ttl=0.02)], "fine", 1, "fine"),
        ([good(least_ttl=6.01), good(least_ttl=3)], "fine", 7, "fine, least ttl 7 s"),
        ([on_mount(EXT4)], "fine", 1, "fine"),
        ([on_mount(SSHFS)], "polling", 1, "fine with polling"),
        ([on_mount(SSHFS), good(least_ttl=7)], "polling", 7, "fine with polling, least ttl 7 s"),
        ([on_mount(SSHFS), Ability("link", BAD, "why")], "unfit", 1, "do not use: link: why"),
        (
            [Ability("a", BAD, "one", {}, 300), good(), Ability("b", BAD, "two")],
            "unfit",
            300,
            "do not use: a: one; b: two",
        ),
    ],
)
def test_the_verdict_as_text(lines: list[Ability], status: str, least_ttl: int, text: str) -> None:
    found = verdict(lines)
    assert (found.status, found.least_ttl, found.text) == (status, least_ttl, text)
    assert bool(found.why) == (status == "unfit")


@pytest.mark.parametrize(
    ("lines", "ttl", "warning"),
    [
        ([good()], 1, ""),
        ([good(least_ttl=7)], 7, ""),
        ([good(least_ttl=7)], 6.5, "fine, least ttl 7 s, but this board's ttl is 6.5 s"),
        ([Ability("a", BAD, "one")], 120, "do not use: a: one"),
    ],
)
def test_a_board_that_should_not_be_used_unchanged_gives_a_warning(
    lines: list[Ability], ttl: float, warning: str
) -> None:
    found = trouble(verdict(lines), ttl)
    assert found.startswith(warning)
    assert bool(found) == bool(warning)


@pytest.mark.parametrize(
    ("race", "needed", "grade", "part"),
    [
        (SOUND, True, GOOD, "one winner each (100:100)"),
        (Race(200, 101, 100, both=1), True, BAD, "in 1 of 200 races both"),
        (Race(200, 101, 100, both=1), False, NOTE, "in 1 of 200 races both"),
        (Race(200, 90, 100, none=10), True, NOTE, "dibs checks again"),
        (Race(200, 90, 100, none=10, error="Stale"), True, NOTE, "without a winner: St"),
        (Race(200, 0, 0, none=200, error="No"), True, BAD, "200 of them without a winner"),
        (Race(200, 0, 0, none=200, error="No"), False, NOTE, "200 of them without a winner"),
        (Race(error="Input/output error"), True, BAD, "no race was run: Input/output error"),
    ],
)
def test_every_race_has_exactly_one_winner(race: Race, needed: bool, grade: str, part: str) -> None:
    line = raced("rename", race, needed=needed)
    assert line.grade == grade
    assert part in line.text


@pytest.mark.parametrize(
    ("times", "grade", "least_ttl", "part"),
    [
        (STEADY, GOOD, 0.028, "steps of 4 ms"),
        (STEADY._replace(tick=1000), GOOD, 0, "steps of less than 1 ms"),
        (STEADY._replace(tick=SECOND), NOTE, 10, "steps of 1 s"),
        (STEADY._replace(tick=2 * SECOND), NOTE, 14, "steps of 2 s"),
        (STEADY._replace(beats=False), BAD, 0, "every claim would look stale"),
        (STEADY._replace(skew=3600 * SECOND), GOOD, 0.028, "ahead of this host's clock"),
        (STEADY._replace(skew=-90 * SECOND), GOOD, 0.028, "90 s behind this host's clock"),
        (STEADY._replace(rename_moves_ctime=False), NOTE, 0.028, "a claim touches the file first"),
        (STEADY._replace(apart=30 * SECOND), NOTE, 150.02, "keep the clocks of all hosts in sync"),
        (STEADY._replace(apart=-30 * SECOND), NOTE, 150.02, "a touch is 30 s off"),
        (STEADY._replace(tick=SECOND, apart=SECOND), NOTE, 10, "steps of 1 s"),
        (STEADY._replace(apart=9 * SECOND, torn=9 * SECOND), NOTE, 0.028, "the clock is untrusted"),
    ],
)
def test_a_ttl_needs_room_for_the_clocks_steps_and_errors(
    times: Times, grade: str, least_ttl: float, part: str
) -> None:
    line = timed(times)
    assert line.grade == grade
    assert line.least_ttl == pytest.approx(least_ttl, abs=0.001)
    assert part in line.text


@pytest.mark.parametrize(
    ("times", "step"),
    [
        ([1_700_000_000 * SECOND, 1_700_000_002 * SECOND], 2 * SECOND),
        ([1_700_000_000 * SECOND, 1_700_000_001 * SECOND], SECOND),
        ([1_700_000_000 * SECOND, 1_700_000_001 * SECOND + 10 * MS], 10 * MS),
        ([1_700_000_000_123_456_789], 1),
        ([1_700_000_000 * SECOND, 1_700_000_060 * SECOND], 2 * SECOND),
    ],
)
def test_the_coarsest_step_that_a_clock_can_have(times: list[int], step: int) -> None:
    assert grain(times) == step


@pytest.mark.parametrize(
    ("refusals", "passed_over", "durability", "grade", "folder"),
    [
        ({}, "", "normal", GOOD, True),
        ({}, "EINVAL", "normal", NOTE, False),
        ({"folder": "EIO"}, "", "normal", BAD, False),
        ({"folder": "EIO"}, "", "off", NOTE, False),
        ({"file": "EIO"}, "", "strict", BAD, True),
    ],
)
def test_durability_is_required_if_the_board_asks_for_it(
    refusals: dict[str, str], passed_over: str, durability: str, grade: str, folder: bool
) -> None:
    line = synced(refusals, passed_over, durability)
    assert (line.grade, line.figures["folder"]) == (grade, folder)
    assert all(why in line.text for why in (passed_over, *refusals.values()))


@pytest.mark.parametrize(
    ("names", "grade", "part"),
    [
        (FREE, GOOD, "every id is possible"),
        (
            FREE._replace(longest=143),
            NOTE,
            "no name longer than 143 bytes, so no id longer than 48",
        ),
        (FREE._replace(longest=95), BAD, "so no id longer than 0"),
        (FREE._replace(cases=False), NOTE, "a and A are the same name"),
        (FREE._replace(forms=False), NOTE, "accented letters are normalised"),
        (FREE._replace(raw=False), NOTE, "must be UTF-8"),
    ],
)
def test_limits_of_names_are_reported(names: Names, grade: str, part: str) -> None:
    line = named(names, 215, 120)
    assert line.grade == grade
    assert part in line.text


@pytest.mark.parametrize(
    ("lag", "tick", "grade", "least_ttl", "part"),
    [
        (0.0004, None, GOOD, 0, "within less than 1 ms"),
        (0.0004, 0.004, GOOD, 0.022, "within less than 1 ms"),
        (1.0, 0.004, NOTE, 5.02, "within 1 s"),
        (20.5, 1.0, NOTE, 107.5, "within 20.5 s"),
        (20.5, None, NOTE, 0, "within 20.5 s"),
        (None, 1.0, BAD, 0, "was not seen over the other path within 65 s"),
    ],
)
def test_a_beat_that_is_seen_late_needs_a_longer_ttl(
    lag: float | None, tick: float | None, grade: str, least_ttl: float, part: str
) -> None:
    line = lagged("peer-beats", "a beat", lag, 65.0, tick)
    assert line.grade == grade
    assert line.least_ttl == pytest.approx(least_ttl, abs=0.001)
    assert part in line.text


@pytest.mark.parametrize(
    ("mode", "tried", "grade", "part"),
    [
        (0o755, {}, GOOD, "only user 7 can work here (mode 0755)"),
        (0o755, None, GOOD, "only user 7 can work here (mode 0755)"),
        (0o2775, None, GOOD, "lets group 8 work here; not tested"),
        (0o2775, {8: ""}, GOOD, "lets group 8 work here, and test users confirmed it"),
        (
            0o777,
            {8: "", -1: ""},
            GOOD,
            "lets group 8 and everyone work here, and test users confirmed it",
        ),
        (0o2775, {8: "make a file (EACCES)"}, NOTE, "of group 8 cannot make a file (EACCES)"),
        (0o1777, {8: "", -1: ""}, BAD, "sticky"),
    ],
)
def test_other_users_that_can_work_are_reported(
    mode: int, tried: dict[int, str] | None, grade: str, part: str
) -> None:
    line = entered(mode, 7, 8, tried)
    assert line.grade == grade
    assert part in line.text


@pytest.mark.parametrize(
    ("mount", "polling", "part"),
    [(EXT4, False, "ext4: changes are reported"), (SSHFS, True, "sshfs: changes by other hosts")],
)
def test_a_mount_that_reports_no_changes_of_others_is_polled(
    mount: Mount, polling: bool, part: str
) -> None:
    line = on_mount(mount)
    assert (line.grade, line.polling) == (GOOD, polling)
    assert part in line.text


def test_an_error_of_the_disk_is_reported_with_its_text() -> None:
    line = refused("sync", OSError(errno.EIO, "Input/output error"))
    assert (line.grade, line.text) == (BAD, "the disk answers Input/output error")
