"""The verbs that wait, follow and count."""

from __future__ import annotations

import json
import math
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

import dibs
from dibs.cli.stats import gather
from tests.contract.command import Command
from tests.contract.place import Place
from tests.patience import PATIENCE

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def board(command: Command) -> dibs.Board:
    return dibs.open(command.where)


@pytest.fixture
def start(command: Command) -> Iterator[Start]:
    """Starts a verb in the background; it is killed at the end of the test."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str) -> subprocess.Popen[bytes]:
        verb = [sys.executable, "-m", "dibs", "-d", command.where, *argv]
        running.append(
            subprocess.Popen(verb, env=command.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def hold(board: dibs.Board, verb: str) -> dibs.Claim:
    if verb == "acquire":
        return board.acquire("a")
    board.add("a")
    claim = board.claim("a")
    assert claim is not None
    return claim


@pytest.mark.parametrize("argv", [["claim"], ["claim", "a"], ["acquire", "a"]])
def test_a_waiting_verb_takes_over_after_a_release(
    board: dibs.Board, start: Start, argv: list[str]
) -> None:
    held = hold(board, argv[0])
    waiting = start(*argv, "--wait")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1.5)
    held.release()
    assert waiting.wait(PATIENCE) == 0
    assert waiting.stdout is not None
    assert waiting.stdout.read().startswith(b"a.f2.")


@pytest.mark.parametrize("argv", [["claim", "a"], ["acquire", "a"]])
def test_a_wait_that_times_out_reports_the_holder(
    board: dibs.Board, command: Command, argv: list[str]
) -> None:
    hold(board, argv[0])
    begin = time.monotonic()
    done = command.run("--json", *argv, "--wait", "1")
    assert time.monotonic() - begin >= 1
    assert (done.returncode, json.loads(done.stdout)["status"]) == (4, "held")


def test_waiting_for_seconds_costs_less_than_starting_again(
    board: dibs.Board, command: Command
) -> None:
    hold(board, "acquire")

    def cost(seconds: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert command.run("acquire", "a", "--wait", seconds, process=True).returncode == 4
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    start = min(cost("0") for _ in range(2))
    assert cost("3") - start < 3 * start, "the wait spins"


def test_add_refuses_or_waits_while_too_many_tasks_are_available(
    board: dibs.Board, command: Command, start: Start
) -> None:
    command("add", "a", "--max-waiting", "1")
    assert "1 or more" in command("add", "c", "--max-waiting", "1", code=3)
    command("add", "b", "--max-waiting", "2")
    assert "2 or more" in command("add", "c", "--max-waiting", "2", code=3)
    waiting = start("add", "c", "--max-waiting", "2", "--wait")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1)
    assert board.claim() is not None
    assert waiting.wait(PATIENCE) == 0
    done = command.run("add", "d", "--max-waiting", "2", "--wait", "0.3")
    late = done.stderr.decode()
    assert done.returncode == 4, "the time is up"
    assert "2 or more tasks are still available or later" in late
    told = command("--json", "add", "d", "--max-waiting", "2", "--wait", "0.3", code=4)
    assert json.loads(told)["status"] == "time-is-up"
    assert "--wait" not in late, "--wait was given"
    assert command("add", "d", "--max-waiting", "3") == "d.available"
    claim = dibs.open(command.where).claim()
    assert claim is not None
    claim.fail("no", retry_in=600)
    assert "3 or more" in command("add", "e", "--max-waiting", "3", code=3), "it waits later"
    assert sum(task.state == "available" for task in board.snapshot().tasks.values()) == 2
    command("add", "e", "--max-waiting", "0", code=2)


def test_the_log_is_followed(board: dibs.Board, start: Start) -> None:
    board.add("a")
    board.add("b")
    following = start("--json", "log", "b", "--follow")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["verb"] == "add"
    board.claim("a")
    board.claim("b")
    assert json.loads(following.stdout.readline())["verb"] == "claim"


def test_reap_every_reaps_repeatedly(board: dibs.Board, start: Start) -> None:
    janitor = start("--json", "reap", "--every", "0.2")
    assert janitor.stdout is not None
    for fence in (1, 2):
        board.add("a") if fence == 1 else None
        claim = board.claim("a", ttl=1)
        assert claim is not None
        found = json.loads(janitor.stdout.readline())
        assert (found["status"], found["attempts"], found["fence"]) == ("reaped", fence, fence)
    janitor.send_signal(signal.SIGTERM)
    assert janitor.wait(PATIENCE) == -signal.SIGTERM


def test_a_verb_that_is_interrupted_says_nothing(board: dibs.Board, start: Start) -> None:
    janitor = start("reap", "--every", "0.2")
    board.add("a")
    board.claim("a", ttl=1)
    assert janitor.stdout is not None
    assert janitor.stdout.readline()
    janitor.send_signal(signal.SIGINT)
    out, err = janitor.communicate(timeout=PATIENCE)
    assert (janitor.returncode, out, err) == (130, b"", b"")


def test_the_prometheus_output_is_valid_and_has_the_figures(
    board: dibs.Board, command: Command
) -> None:
    for name in "abc":
        board.add(name)
    claim = board.claim()
    assert claim is not None
    claim.done()
    board.claim()
    samples: dict[str, float] = {}
    helped, typed = set(), set()
    for line in command.run("stats", "--prometheus").stdout.decode().splitlines():
        if m := re.fullmatch(r"# HELP ([a-z_]+) \S.*", line):
            helped.add(m[1])
        elif m := re.fullmatch(r"# TYPE ([a-z_]+) (gauge|counter)", line):
            assert m[1].endswith("_total") is (m[2] == "counter")
            typed.add(m[1])
        else:
            m = re.fullmatch(
                r'([a-z_]+)\{board="([^"]+)"(?:,([a-z]+="[a-z-]+"))?\} (\d+(?:\.\d+)?|NaN|\+Inf)',
                line,
            )
            assert m, line
            assert m[1] in helped & typed
            assert m[2] == command.where
            assert m[1] + (m[3] or "") not in samples
            samples[m[1] + (m[3] or "")] = float(m[4])
    assert helped == typed
    assert samples['dibs_tasksstate="available"'] == 1
    assert samples['dibs_tasksstate="claimed"'] == 1
    assert samples['dibs_tasksstate="done"'] == 1
    assert samples['dibs_events_per_minuteevent="claims"'] == pytest.approx(2)
    assert samples['dibs_events_totalevent="claims"'] == 2
    assert samples['dibs_events_totalevent="adds"'] == 3
    assert samples['dibs_events_totalevent="late-holders"'] == 0
    assert samples["dibs_unusually_long_claims"] == 0
    assert samples["dibs_events_complete"] == 1
    assert samples["dibs_oldest_waiting_seconds"] >= 0


def test_what_starts_later_is_part_of_the_backlog_and_of_the_time_until_it_is_done(
    board: dibs.Board, command: Command
) -> None:
    assert json.loads(command("--json", "stats"))["drain"] == 0
    for n in range(4):
        board.add(f"t{n}", start_in=3600 if n == 3 else 0)
    figures = json.loads(command("--json", "stats"))
    assert (figures["available"], figures["later"], figures["backlog"]) == (3, 1, 4)
    assert figures["drain"] is None
    assert "drain        not known yet" in command("stats")
    assert command.run("stats", "--fail-if", "drain>1m").returncode == 0


def test_the_time_until_the_backlog_is_done_follows_the_rates(place: Place) -> None:
    board = place.board
    for n in range(10):
        board.add(f"t{n}", start_in=86_000 if n > 4 else 0)
    assert math.isnan(gather(board).values["drain"])  # for the first minutes
    place.advance(590)
    assert math.isinf(gather(board).values["drain"])
    place.advance(20)  # the adds are out of the window
    for _ in range(2):
        claim = board.claim()
        assert claim is not None
        claim.done()
    figures = gather(board).values
    assert (figures["available"], figures["later"], figures["backlog"]) == (3, 5, 8)
    assert figures["drain"] == pytest.approx(8 / 2 * 600, rel=0.05)


def test_an_expiry_counts_once_whether_it_was_reaped_or_not(place: Place) -> None:
    def rates() -> tuple[float, float]:
        figures = gather(place.board).values
        return figures["expiries/min"], figures["reaps/min"]

    place.board.add("a")
    place.advance(700)
    assert place.board.claim(ttl=10) is not None
    place.advance(5)
    assert rates() == (0, 0)
    place.advance(30)
    assert rates() == (0.1, 0)
    assert place.board.reap().tasks
    assert rates() == (0.1, 0.1)
    assert place.board.claim(ttl=10) is not None
    place.advance(700)
    assert place.board.snapshot().counts()["stale"] == 1
    assert rates() == (0, 0), "both are older than the window of the rates"


FAIL_IF = [
    ("available>1", 6), ("available>2", 0), ("available=2", 6), ("available>=2", 6),
    ("available<2", 0), ("available<=2", 6), ("stale>0", 0), ("reaps/min>10", 0),
    ("oldest>15m", 0), ("oldest<15m", 6), (" available > 1 ", 6),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "code"), FAIL_IF)
def test_fail_if(command: Command, board: dibs.Board, expression: str, code: int) -> None:
    board.add("a")
    board.add("b")
    done = command.run("stats", "--fail-if", expression, "--fail-if", "failed>0")
    assert done.returncode == code
    assert (b"holds" in done.stderr) == (code == 6)


@pytest.mark.parametrize("expression", ["", "stale", "stale>", ">5", "colour>1", "stale>x"])
def test_an_invalid_fail_if_is_refused(command: Command, expression: str) -> None:
    command("stats", "--fail-if", expression, code=2)


def test_undo_undoes_each_act_once_or_says_why_not(command: Command, board: dibs.Board) -> None:
    assert "no act" in command("undo", code=3)
    board.add("a")
    name = command("prioritize", "a.available", "9")
    assert command("undo", name, "a.available") == "a.available"
    assert "already been undone" in command("undo", name, "a.available", code=3)
    name = command("park", "a.available")
    command("requeue", name)
    assert command("undo", "a.available", name) == name
    command("requeue", name)
    claim = board.claim()
    assert claim is not None
    assert "cannot undo" in command("undo", "a.available", name, code=3)
    command("force-release", claim.name, "--reason", "stuck")
    assert "was revoked" in command("undo", code=3)
    board.add("b")
    name = command("park", "b.available")
    command("prioritize", "a.f1.available", "9")
    assert command("undo", name, "b.available") == "b.available"


def test_undo_without_both_names_does_nothing_and_prints_the_command_to_run(
    command: Command, board: dibs.Board
) -> None:
    board.add("a")
    name = command("park", "a.available")
    for given in ((), ("a",), (name,)):
        message = command("undo", *given, code=2)
        assert re.search(r"the park of 'a' by (op/)?tester@", message)
        assert f"`dibs undo {name} a.available`" in message
    assert board.find("a")[0].name == name


def test_undo_refuses_if_another_act_followed_the_one_that_was_seen(
    command: Command, board: dibs.Board
) -> None:
    board.add("a")
    board.prioritize(board.prioritize("a.available", 8).name, 9)
    seen = ("undo", "a.f0p9.available", "a.f0p8.available")
    board.prioritize(board.prioritize("a.f0p9.available", 7).name, 9)
    message = command(*seen, code=3)
    assert "`dibs undo a.f0p9.available a.f0p7.available`" in message
    assert board.find("a")[0].name == "a.f0p9.available"


@pytest.mark.parametrize("act", ["force-release", "requeue", "park", "prioritize"])
def test_an_act_on_a_bare_id_is_refused_with_the_exact_name_to_give(
    command: Command, board: dibs.Board, act: str
) -> None:
    board.add("a")
    more = {"force-release": ["--reason", "why"], "prioritize": ["9"]}.get(act, [])
    assert "a.available" in command(act, "a", *more, code=2)
    assert "nothing on this board" in command(act, "b", *more, code=2)
    assert command("ls").count("a.available") == 1
