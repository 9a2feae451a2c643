"""The verbs that wait, watch, count and complete."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dibs
from dibs.cli.grammar import VERBS
from dibs.cli.stats import gather
from tests.core.test_cli import Command
from tests.core.tools import Place, settle
from tests.patience import PATIENCE

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)


@pytest.fixture
def board(command: Command) -> dibs.Board:
    return dibs.open(command.path)


@pytest.fixture
def start(command: Command) -> Iterator[Start]:
    """Starts a verb that does not end at once; whatever still runs is killed."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str) -> subprocess.Popen[bytes]:
        verb = [sys.executable, "-m", "dibs", "-d", str(command.path), *argv]
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
def test_a_wait_that_is_up_says_who_has_it(
    board: dibs.Board, command: Command, argv: list[str]
) -> None:
    hold(board, argv[0])
    begin = time.monotonic()
    done = command.run("--json", *argv, "--wait", "1")
    assert time.monotonic() - begin >= 1
    assert (done.returncode, json.loads(done.stdout)["status"]) == (4, "held")


def test_waiting_for_seconds_costs_less_than_to_start_anew(
    board: dibs.Board, command: Command
) -> None:
    hold(board, "acquire")

    def cost(seconds: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert command.run("acquire", "a", "--wait", seconds).returncode == 4
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    start = min(cost("0") for _ in range(2))
    assert cost("3") - start < 3 * start, "a wait that spins takes what it can get"


def test_add_refuses_or_waits_while_too_many_wait(
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
    late = command("add", "d", "--max-waiting", "2", "--wait", "0.3", code=3)
    assert "2 or more tasks wait still" in late
    assert "--wait" not in late, "it was given"
    assert command("add", "d", "--max-waiting", "3") == "d.available"
    assert sum(task.state == "available" for task in board.snapshot().tasks.values()) == 3
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


def test_a_janitor_reaps_again_and_again(board: dibs.Board, start: Start) -> None:
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


def test_prometheus_reads_the_figures(board: dibs.Board, command: Command) -> None:
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
        elif m := re.fullmatch(r"# TYPE ([a-z_]+) gauge", line):
            typed.add(m[1])
        else:
            m = re.fullmatch(
                r'([a-z_]+)\{board="([^"]+)"(?:,([a-z]+="[a-z]+"))?\} (\d+(?:\.\d+)?)', line
            )
            assert m, line
            assert m[1] in helped & typed
            assert m[2] == str(command.path)
            assert m[1] + (m[3] or "") not in samples
            samples[m[1] + (m[3] or "")] = float(m[4])
    assert helped == typed
    assert samples['dibs_tasksstate="available"'] == 1
    assert samples['dibs_tasksstate="claimed"'] == 1
    assert samples['dibs_tasksstate="done"'] == 1
    assert samples['dibs_events_per_minuteevent="claims"'] == pytest.approx(2)
    assert samples["dibs_events_complete"] == 1
    assert samples["dibs_oldest_waiting_seconds"] >= 0


def test_an_expiry_counts_once_whether_it_was_given_back_or_not(place: Place) -> None:
    def rates() -> tuple[float, float]:
        figures = gather(place.board).values
        return figures["expiries/min"], figures["reaps/min"]

    place.board.add("a")
    place.world.advance(700)
    assert place.board.claim(ttl=10) is not None
    place.world.advance(5)
    assert rates() == (0, 0)
    place.world.advance(30)
    assert rates() == (0.1, 0)
    assert place.board.reap().given_back
    assert rates() == (0.1, 0.1)
    assert place.board.claim(ttl=10) is not None
    place.world.advance(700)
    assert place.board.snapshot().counts()["stale"] == 1
    assert rates() == (0, 0), "both are longer ago than the rates reach"


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
def test_a_fail_if_that_makes_no_sense_is_refused(command: Command, expression: str) -> None:
    command("stats", "--fail-if", expression, code=2)


def test_undo_takes_back_each_act_once_and_says_why_not(
    command: Command, board: dibs.Board
) -> None:
    assert "no act" in command("undo", code=3)
    board.add("a")
    name = command("prioritise", "a.available", "9")
    assert command("undo", name, "a.available") == "a.available"
    assert "no act" in command("undo", name, "a.available", code=3)
    name = command("park", "a.available")
    command("requeue", name)
    assert command("undo", "a.available", name) == name
    command("requeue", name)
    claim = board.claim()
    assert claim is not None
    assert "cannot undo" in command("undo", "a.available", name, code=3)
    command("force-release", claim.name, "--reason", "stuck")
    assert "told to stop" in command("undo", code=3)
    board.add("b")
    name = command("park", "b.available")
    command("prioritise", "a.f1.available", "9")
    assert command("undo", name, "b.available") == "b.available"


def test_undo_without_the_two_names_of_the_act_does_nothing_and_prints_the_line_to_give(
    command: Command, board: dibs.Board
) -> None:
    board.add("a")
    name = command("park", "a.available")
    for given in ((), ("a",), (name,)):
        told = command("undo", *given, code=2)
        assert "the park of 'a' by tester@" in told
        assert f"`dibs undo {name} a.available`" in told
    assert board.find("a")[0].name == name


def test_undo_leaves_an_act_that_came_after_the_one_that_was_seen(
    command: Command, board: dibs.Board
) -> None:
    board.add("a")
    board.reprioritise(board.reprioritise("a.available", 8).name, 9)
    seen = ("undo", "a.f0p9.available", "a.f0p8.available")
    board.reprioritise(board.reprioritise("a.f0p9.available", 7).name, 9)
    told = command(*seen, code=3)
    assert "`dibs undo a.f0p9.available a.f0p7.available`" in told
    assert board.find("a")[0].name == "a.f0p9.available"


@pytest.mark.parametrize("act", ["force-release", "requeue", "park", "prioritise"])
def test_an_act_on_a_bare_id_is_answered_with_the_name_to_give(
    command: Command, board: dibs.Board, act: str
) -> None:
    board.add("a")
    more = {"force-release": ["--reason", "why"], "prioritise": ["9"]}.get(act, [])
    assert "give one of these: a.available" in command(act, "a", *more, code=2)
    assert "nothing on this board" in command(act, "b", *more, code=2)
    assert command("ls").count("a.available") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shells_understand_the_completion(command: Command, shell: str) -> None:
    script = command.run("completion", shell).stdout.decode()
    for word in (*VERBS, "run", "--max-waiting"):
        assert word.removeprefix("--") in script
    if shutil.which(shell) is None:
        pytest.skip(f"THE COMPLETION OF {shell} WAS NOT TRIED: it is not installed")
    checked = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_paths_say_where_everything_lies_and_why(command: Command) -> None:
    rows = {
        row["key"]: row
        for row in map(json.loads, command.run("--json", "paths").stdout.splitlines())
    }
    assert rows["board"]["path"] == str(command.path)
    assert rows["board"]["from"] == "-d"
    assert Path(rows["shell"]["path"]).is_file()
    command.env["DIBS_DIR"] = str(command.path)
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "paths"], env=command.env, capture_output=True, check=True
    )
    assert b"$DIBS_DIR" in done.stdout
