"""Delays on the files engine: the rules, the clock, lost names, the shell library, the words."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs import cli
from dibs.cli.moments import moment
from dibs.model.delays import (
    SET_BACK,
    delay_after,
    is_due,
    next_start,
    spread,
    start_after,
)
from dibs.model.names import NOT_BEFORE_MAX, read, unclaimed_name
from dibs.model.settings import DEFAULT_TOML, Settings, dump, load
from dibs.model.task import Stamp, Task
from tests.core.library import Fleet
from tests.core.tools import SECOND, Killed, Place, settle

pytestmark = pytest.mark.fast("dibs.files")

NOW = 1_700_000_000
DEFAULT = (1.0, 10.0, 60.0, 600.0)


def later(at: int, attempts: int = 1) -> Task:
    task = read(unclaimed_name("t", Stamp(1, attempts, not_before=at)))
    assert task is not None
    return task


# The rules


@pytest.mark.parametrize(
    ("retry", "attempts", "delay"),
    [
        (DEFAULT, 1, 1),
        (DEFAULT, 2, 10),
        (DEFAULT, 4, 600),
        (DEFAULT, 99, 600),
        (DEFAULT, 0, 1),
        ((), 3, 0),
        ((5.0,), 7, 5),
    ],
)
def test_the_delay_of_each_failure_is_that_of_its_number(
    retry: tuple[float, ...], attempts: int, delay: float
) -> None:
    assert delay_after(retry, attempts) == delay


@given(st.floats(0.001, 86_400), st.text(alphabet="0123456789ABCDEF", min_size=10, max_size=10))
def test_a_delay_varies_by_a_tenth_at_most(delay: float, nonce: str) -> None:
    assert 0.899 * delay <= spread(delay, nonce) <= 1.101 * delay


@given(st.integers(0, 2**62), st.floats(0, 95_040), st.integers(0, 2**62))
def test_a_start_is_past_or_a_whole_second_at_or_after_its_time(
    start: int, delay: float, now: int
) -> None:
    at = start_after(start, delay, now)
    wanted = min(start, now) + round(delay * SECOND)
    assert at == 0 if wanted <= now else wanted <= at * SECOND < wanted + SECOND
    assert at <= NOT_BEFORE_MAX
    assert not at or is_due(later(at), at * SECOND)


@pytest.mark.parametrize(
    ("at", "attempts", "due"),
    [
        (NOW, 1, True),
        (NOW - 1, 0, True),
        (NOW + 1, 1, False),
        (NOW + SET_BACK // SECOND, 1, False),
        (NOW + SET_BACK // SECOND + 1, 1, True),
        (NOW + SET_BACK // SECOND + 1, 0, False),
    ],
)
def test_a_task_is_due_at_its_time_or_if_the_clock_was_set_back(
    at: int, attempts: int, due: bool
) -> None:
    assert is_due(later(at, attempts), NOW * SECOND) is due


def test_the_next_start_is_that_of_the_first_task() -> None:
    tasks = [later(NOW + 40), later(NOW + 10)]
    assert next_start(tasks, NOW * SECOND) == 10
    assert next_start([*tasks, later(NOW - 5)], NOW * SECOND) == 0
    available = read("x.available")
    assert available is not None
    assert next_start([available], NOW * SECOND) is None


# The settings


def test_the_default_settings_are_those_of_a_new_board() -> None:
    assert load(DEFAULT_TOML) == load(dump(Settings())) == Settings()
    assert Settings().retry == DEFAULT


@pytest.mark.parametrize(
    ("text", "retry"),
    [
        ('["1s", "10s", "1m", "10m"]', DEFAULT),
        ("[]", ()),
        ('["0.5s", "250ms", "2h", "1d", "7"]', (0.5, 0.25, 7200, 86_400, 7)),
        ('["90s",]', (90,)),
    ],
)
def test_delays_are_a_list_of_times_for_dibs_and_for_shells(
    fleet: Fleet, text: str, retry: tuple[float, ...]
) -> None:
    line = f"retry = {text}  # words\n".encode()
    settings = load(line)
    assert settings.retry == retry
    assert load(dump(settings)) == settings
    fleet.add("a")
    (fleet.path / ".dibs/board.toml").write_bytes(line)
    hundredths = [str(round(each * 100)) for each in retry]
    assert fleet.sh('cd "$DIBS_DIR"; dibs_settings; echo $retry').split() == hundredths


@pytest.mark.parametrize(
    "text", ['"1s"', "[1]", '["soon"]', '["-1s"]', '["2d"]', "true", '["1s", ["2s"]]', '["1h 5m"]']
)
def test_invalid_delays_are_refused_with_their_line(fleet: Fleet, text: str) -> None:
    data = f"ttl = 9\nretry = {text}\n".encode()
    with pytest.raises(
        dibs.BadSettings, match=r"line 2: retry must be a list of times up to a day"
    ):
        load(data)
    fleet.add("a")
    (fleet.path / ".dibs/board.toml").write_bytes(data)
    done = fleet.run("claim_task a")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"retry" in done.stderr


# The disk


@pytest.fixture
def slow(scratch: Path) -> Place:
    return Place(scratch, retry=(10.0,))


def failed(place: Place, ident: str = "x") -> Task:
    place.board.add(ident)
    claim = place.board.claim(ident)
    assert claim is not None
    return claim.fail()


def test_a_worker_that_loses_a_due_name_to_a_janitor_still_gets_the_task(slow: Place) -> None:
    task = failed(slow)
    slow.advance(12)
    board, port = slow.another()
    other = slow.other()

    def overtake(path: str) -> None:
        if path == task.name:
            port.before.clear()
            assert [made.state for made in other.reap().due] == ["available"]

    port.before["rename"] = overtake
    claim = board.claim()
    assert claim is not None
    assert claim.fence == 2


def test_a_worker_that_loses_a_due_name_to_another_worker_finds_nothing(slow: Place) -> None:
    task = failed(slow)
    slow.advance(12)
    board, port = slow.another()
    other = slow.other()

    def snatch(path: str) -> None:
        if path == task.name:
            port.before.clear()
            assert other.claim() is not None

    port.before["rename"] = snatch
    assert board.claim() is None


def test_a_board_without_later_tasks_costs_no_look_at_the_clock(scratch: Path) -> None:
    place = Place(scratch, retry=(10.0,))
    place.board.add("a")
    place.board.add("b")
    board, port = place.another()
    assert board.claim() is not None
    touched: list[str] = []
    port.before["touch"] = touched.append
    assert board._queue.refill()
    assert board.claim() is not None
    assert touched == []


def test_where_the_clock_cannot_be_read_a_failed_task_is_available_at_once(slow: Place) -> None:
    def broken(path: str) -> None:
        raise OSError(5, "Input/output error", path)

    slow.board.add("x")
    claim = slow.board.claim("x")
    assert claim is not None
    slow.port.before["touch"] = broken
    assert claim.fail().state == "available"


def test_a_clock_that_was_set_back_only_makes_a_task_late(slow: Place) -> None:
    task = failed(slow)
    slow.world.step(-50_000)
    assert slow.other().claim() is None
    assert slow.board.requeue(task.name).state == "available"


def test_a_clock_that_was_set_far_back_holds_no_failed_task(slow: Place) -> None:
    failed(slow)
    slow.board.add("y", start_in=150_000)
    slow.world.step(-200_000)
    claim = slow.other().claim()
    assert claim is not None
    assert claim.id == "x"
    assert slow.other().claim() is None, "a new task may be meant to wait that long"


def test_a_waiter_tries_again_when_the_next_task_is_due(scratch: Path) -> None:
    """Only the sleeps take time here."""
    place = Place(scratch, retry=(300.0,))
    failed(place)
    board = place.other()
    start = place.world.boot
    found = board.wait_for(board.claim, 1000)
    assert found is not None
    waited = (place.world.boot - start) / SECOND
    assert found.fence == 2
    assert 269 <= waited <= 332, "300 s, a tenth less to a tenth more, and a second"


def test_a_shell_worker_sees_no_later_task_until_a_janitor_made_it_available(slow: Place) -> None:
    failed(slow)
    assert not list(slow.path.glob("*.available"))
    slow.advance(12)
    slow.board.reap()
    assert [path.name for path in slow.path.glob("*.available")] == ["x.f1a1.available"]


def test_an_interrupted_add_for_later_is_published_for_later(slow: Place) -> None:
    def killed(path: str) -> None:
        raise Killed

    slow.port.before["rename"] = killed
    with pytest.raises(Killed):
        slow.board.add("x", b"night work", start_in=20_000)
    slow.advance(4000)
    slow.other().repair()
    (task,) = slow.board.find("x")
    assert (task.state, slow.board.payload(task)) == ("later", b"night work")


def test_a_folder_with_the_name_of_a_due_task_is_passed_over_and_reported(slow: Place) -> None:
    (slow.path / f"odd.f1a1n{NOW}.later").mkdir()
    failed(slow)
    slow.advance(12)
    claim = slow.other().claim()
    assert claim is not None
    assert claim.id == "x"
    assert "stuck" in {finding.kind for finding in slow.board.check()}


# The shell library


@pytest.fixture
def waiting(fleet: Fleet) -> Fleet:
    """Shells on a board on which failed tasks wait."""
    settle(fleet.path, retry=(100.0, 1000.0))
    fleet.add("a")
    return fleet


def starts(fleet: Fleet) -> float:
    """Seconds until the only later task starts."""
    snapshot = fleet.board().snapshot()
    found = snapshot.next_start()
    assert found is not None, fleet.names()
    return found


def test_a_failed_task_waits_in_a_shell_too(waiting: Fleet) -> None:
    waiting.sh("claim_task a >/dev/null; fail_task '' why")
    (task,) = waiting.board().find("a")
    assert (task.state, task.attempts, task.fence) == ("later", 1, 1)
    assert 30 < starts(waiting) <= 111
    assert waiting.sh("next_task", code=4) == ""
    done = waiting.run("claim_task a")
    assert done.returncode == 4
    assert b"a starts in " in done.stderr
    waiting.board().requeue(task.name, keep_attempts=True)
    waiting.sh("claim_task a >/dev/null; fail_task")
    assert 800 < starts(waiting) <= 1101


@pytest.mark.parametrize("verb", ["fail_task '' why 5m", "return_task '' busy 5m"])
def test_a_shell_can_give_a_delay(waiting: Fleet, verb: str) -> None:
    waiting.sh(f"claim_task a >/dev/null; {verb}")
    (task,) = waiting.board().find("a")
    assert (task.state, task.attempts) == ("later", int("fail" in verb))
    assert 200 < starts(waiting) <= 301
    done = waiting.run("fail_task x.f1.w-0123456789 why soon")
    assert (done.returncode, b"is not a time" in done.stderr) == (2, True)


@pytest.mark.parametrize("how", ["next_task", "claim_task a", "reap_stale; next_task"])
def test_a_shell_takes_a_due_task(waiting: Fleet, how: str) -> None:
    board = waiting.board()
    board.add("b", priority=3)
    claim = board.claim("a")
    assert claim is not None
    task = claim.fail()
    due = task.name.replace(f"n{task.not_before}", f"n{NOW}")
    (waiting.path / task.name).rename(waiting.path / due)
    waiting.sh(f"{how} >/dev/null; done_task")
    assert [name.partition(".f2a1.")[0] for name in waiting.names()] == [
        "b.f0p3.available",
        "done/a",
    ]


def test_a_shell_makes_due_tasks_available_and_leaves_the_others(waiting: Fleet) -> None:
    for name in (f"x.f2a1p8q1r1n{NOW}.later", "y.f0n99999999999.later", "z.later.available"):
        (waiting.path / name).write_text(name)
    assert waiting.sh("reap_stale").split() == ["x.f2a1p8q1r1.available"]
    assert "y.f0n99999999999.later" in waiting.names()
    events = waiting.board().log.of("x")
    assert [(event.verb, event.dst) for event in events] == [("due", "x.f2a1p8q1r1.available")]


def test_a_question_and_its_answer_stay_in_the_names_that_a_shell_makes(waiting: Fleet) -> None:
    (waiting.path / "x.f2p8q1r1.available").write_text("x")
    assert ".f3p8q1r1.me-" in waiting.sh("claim_task x")
    waiting.sh("reap_stale")
    (task,) = waiting.board().find("x")
    assert (task.question, task.answer, task.priority) == (1, 1, 8)
    waiting.sh("fail_task", DIBS_CLAIM=task.stem)
    assert [n for n in waiting.names() if n.startswith("x.f3a1p8q1r1n")]


# The words


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@1790000000", 1_790_000_000),
        ("2026-01-31T14:30:00+00:00", 1_769_869_800),
        ("2026-01-31 14:30+02:00", 1_769_862_600),
    ],
)
def test_a_moment_is_unix_seconds_or_a_date(text: str, wanted: float) -> None:
    assert moment(text) == wanted


def test_a_time_of_day_is_the_next_one() -> None:
    now = time.time()
    for text in ("00:00", "9:30", "23:59"):
        at = moment(text, now)
        assert now < at <= now + 90_000, "a day with a change of summer time has 25 hours"
        assert time.strftime("%H:%M", time.localtime(at)) == text.zfill(5)


@pytest.mark.parametrize("text", ["", "soon", "25:00", "@", "@-5", "12", "2026-13-01", "\x1b[2J"])
def test_another_text_is_no_moment(text: str) -> None:
    with pytest.raises(dibs.BadName, match="is not a moment"):
        moment(text)


def say(place: Place, *argv: str, code: int = 0) -> None:
    assert cli.main(["-d", str(place.path), *argv]) == code


def test_the_command_line_puts_tasks_off_and_shows_them(
    slow: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    say(slow, "add", "a", "b", "--in", "1h")
    say(slow, "add", "c", "--at", "@99999999999")
    assert [line.rpartition(".")[2] for line in capsys.readouterr().out.split()] == ["later"] * 3
    say(slow, "ls")
    shown = capsys.readouterr()
    assert "3 later (next in 60m)" in shown.err
    assert "in 60m" in shown.out
    say(slow, "stats")
    assert "next         60m" in capsys.readouterr().out
    say(slow, "--json", "ls", "starts<2h", "state=later")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == ["a", "b"]
    assert 3500 < rows[0]["starts"] <= 3601
    say(slow, "claim", "a", code=4)
    say(slow, "--json", "claim", "a", code=4)
    assert '"status": "not-due"' in capsys.readouterr().out
    say(slow, "requeue", rows[0]["claim"])
    assert capsys.readouterr().out.split() == ["a.available"]
    for late in ("9999-12-31", "@99999999999999"):
        say(slow, "add", "d", "--at", late, code=2)
        told = capsys.readouterr().err
        assert f"--at: '{late}' is too late: the latest start is 5138-11-16" in told
    say(slow, "add", "past", "--at", "1960-01-01")
    assert capsys.readouterr().out.split() == ["past.available"]
    say(slow, "add", "d", "--in", "5", "--at", "@5", code=2)
    assert "--in and --at exclude each other" in capsys.readouterr().err


def test_the_command_line_ends_claims_with_a_delay(
    slow: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    slow.board.add("a")
    for verb, option in (("fail", "--retry-in"), ("release", "--in"), ("fail", "--retry-in")):
        say(slow, "claim", "a")
        claim = capsys.readouterr().out.strip()
        seconds = "5m" if verb == "release" else "0" if option == "--retry-in" else ""
        say(slow, verb, claim, option, seconds)
        name = capsys.readouterr().out.strip()
        state = "later" if verb == "release" else "available"
        assert name.endswith(f".{state}")
        if state == "later":
            say(slow, "requeue", name, "--keep-attempts")
            capsys.readouterr()
    say(slow, "claim", "a")
    claim = capsys.readouterr().out.strip()
    say(slow, "fail", claim, "--retry-in", "2d", code=2)
    assert "a delay must be 0 to 86400 seconds" in capsys.readouterr().err


def test_a_reason_is_a_field_of_filters_and_stands_in_a_dry_run(
    slow: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    for ident, reason in (("a", "Timeout after 5 s"), ("b", "connection refused")):
        slow.board.add(ident)
        claim = slow.board.claim(ident)
        assert claim is not None
        claim.fail(reason)
    slow.board.add("c")
    say(slow, "--json", "ls", "reason~timeout")
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["id"], row["reason"]) == ("a", "Timeout after 5 s")
    say(slow, "ls", "!reason~timeout", "reason!=")
    assert "connection refused" in capsys.readouterr().out
    listed = slow.path.parent / "list"
    listed.write_text("a\nb\n")
    say(slow, "requeue", "--from", str(listed), "--dry-run")
    assert "(Timeout after 5 s)" in capsys.readouterr().out
    say(slow, "requeue", "--from", str(listed))
    assert {task.state for task in slow.board.snapshot().tasks.values()} == {"available"}


def test_reap_every_wakes_up_for_a_due_task(
    slow: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a pass each hour, a task that is due in 20 s must not wait for an hour."""
    slow.board.add("a", start_in=20)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr("dibs.cli.care.time.sleep", sleep)
    assert cli.main(["-d", str(slow.path), "reap", "--every", "1h"]) == 130
    assert 0 < slept[0] <= 22, slept  # whole seconds, and the disk's clock may lag a little
