"""The command line: options, names, and the choice of the board."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import dibs
from tests.core.test_cli import Command


def test_the_value_of_an_option_is_never_read_as_a_name(command: Command) -> None:
    source = command.path.parent / "job.available"
    source.write_bytes(b"payload")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "dibs",
            "-d",
            str(command.path),
            "add",
            "a",
            f"--file={source.name}",
        ],
        cwd=source.parent,
        env=command.env,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"a.available\n"
    assert (command.path / "a.available").read_bytes() == b"payload"
    claim = command("claim", "a", "--owner=web.claimed")
    claim = command("claim", f"--resume={claim}")
    assert command("fail", claim, "--reason=not.available") == "a.f2a1.available"
    lease = command("acquire", "door")
    assert command("acquire", "door", f"--lease={lease}") == lease
    assert command("acquire", "door", f"--resume={lease}").startswith("door.f2.")


@pytest.mark.parametrize(
    "given", [["-dboard"], ["--dir=board"], ["-d", "board"], ["--board", "board"]]
)
def test_the_board_option_may_come_before_or_after_the_verb(
    command: Command, given: list[str]
) -> None:
    dibs.open(command.path).add("a")
    for argv in ([*given, "ls"], ["ls", *given], ["--json", *given, "ls"]):
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *argv],
            cwd=command.path.parent,
            env=command.env,
            capture_output=True,
            check=True,
        )
        assert b"a.available" in done.stdout, argv


@pytest.mark.parametrize("given", [["-d", ""], ["--dir="], ["--board="], []])
def test_an_empty_path_does_not_mean_the_current_directory(
    command: Command, given: list[str]
) -> None:
    command.env["DIBS_DIR"] = ""
    command.path.joinpath("a.available").touch()
    for argv in ([*given, "claim"], ["claim", *given], [*given, "paths"]):
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *argv],
            cwd=command.path,
            env=command.env,
            capture_output=True,
        )
        assert (done.returncode, b"-d takes a directory" in done.stderr) == (2, True), done


def test_an_error_names_the_source_of_the_path(command: Command) -> None:
    command.path.mkdir(exist_ok=True)

    def source(*argv: str, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *argv, "paths"],
            cwd=command.path,
            env=command.env | env,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout.splitlines()[0].rpartition("  ")[2]

    assert source() == "(the current directory)"
    assert source(DIBS_DIR=str(command.path)) == "($DIBS_DIR)"
    assert source(DIBS_BOARD=str(command.path)) == "($DIBS_BOARD)"
    assert source("-d", "/", DIBS_DIR=str(command.path)) == "(-d)"


def test_a_completion_script_can_be_a_json_object(command: Command) -> None:
    found = json.loads(command.run("--json", "completion", "bash").stdout)
    assert (found["v"], found["shell"]) == (1, "bash")
    assert found["script"].encode() == command.run("completion", "bash").stdout


def test_the_command_that_makes_a_missing_board_can_be_copied_from_anywhere(
    command: Command,
) -> None:
    missing = command.path.parent / "no such" / "board"
    said = command("-d", str(missing), "ls", code=1)
    assert f"or make a new board with `dibs -d '{missing}' init`" in said


def test_the_log_of_an_unknown_id_is_refused(command: Command) -> None:
    dibs.open(command.path).add("a")
    (command.path / "by-hand.available").touch()
    said = command("log", "nope", code=3)
    assert "no event in the log has the id 'nope'" in said
    assert command("log", "nope", "--last", "3", code=3) == said
    failed = command.run("--json", "log", "nope")
    assert (failed.returncode, json.loads(failed.stdout)["status"]) == (3, "unknown-id")
    assert command("log", "by-hand") == "", "it is on the board, but no event was written"
    assert " add " in command("log", "a", "--last", "1")


def test_a_filter_that_matches_nothing_says_so(command: Command) -> None:
    dibs.open(command.path).add("a")
    dibs.open(command.path).add("b")
    assert b": 0 of 2 match (2 available)\n" in command.run("ls", "owner=w*").stderr
    assert b": 1 of 2 match (2 available)\n" in command.run("ls", "a").stderr


def test_an_interval_below_the_shortest_is_refused(command: Command) -> None:
    said = command("reap", "--every", "0", code=2)
    assert said == "dibs: --every must be at least 0.05 seconds, got 0"


def test_the_help_names_the_option_that_prints_the_version(command: Command) -> None:
    assert "dibs --version " in command("--help")


@pytest.mark.parametrize("state", ["available", "failed", "done", "free"])
def test_show_gives_the_same_age_as_ls_to_a_task_without_a_claim(
    command: Command, state: str
) -> None:
    board = dibs.open(command.path)
    if state == "free":
        board.acquire("a").release()
    else:
        board.add("a")
    if state == "failed":
        board.park("a.available", "later")
    if state == "done":
        claim = board.claim()
        assert claim is not None
        claim.done()
    (shown,) = map(json.loads, command("--json", "show", "a").splitlines())
    (listed,) = map(json.loads, command("--json", "ls", f"state={state}").splitlines())
    assert 0 <= listed["age"] - shown["age"] < 60
    assert "\nage " in command("show", "a")


def test_an_error_says_what_to_give_instead(command: Command) -> None:
    board = dibs.open(command.path)
    board.add("notes")
    board.add("build")
    claim = board.claim("build")
    assert claim is not None
    done = claim.done().name
    for empty in (["add", ""], ["run", "--lock", "", "--", "true"]):
        assert command(*empty, code=2) == "dibs: the id is empty: give one of 1 to 120 bytes"
    said = command("requeue", "owner=w1", code=2)
    assert "`dibs ls owner=w1` lists what matches" in said
    assert "`dibs requeue --from FILE`" in said
    said = command("run", "--lock", "nightly", "echo", "hi", code=2)
    assert "unrecognised arguments: hi: is -- missing before CMD?" in said
    said = command("prioritize", "notes.available", "high", code=2)
    assert "'high' is not a priority: give 0 to 9, 9 first" in said
    for verb in ("done", "fail", "release", "beat", "verify"):
        said = command(verb, "build", code=2)
        assert f"now it is {done} (done" in said
    said = command("force-release", "notes.available", "--reason", "x", code=3)
    why = "nothing was done, it is available, not claimed or held"
    assert said == f"dibs: notes.available: {why} (board {command.path})"
    assert "`dibs purge --done --older-than AGE`" in command("forget", "build", code=3)
    assert f"`dibs requeue {done}` runs it again" in command("add", "build", code=3)
    assert command("add", "notes", code=3).endswith(
        f"(available); give another id (board {command.path})"
    )


def test_a_list_is_made_as_the_error_about_it_says(command: Command) -> None:
    board = dibs.open(command.path)
    board.add("build")
    claim = board.claim("build")
    assert claim is not None
    claim.fail("no space left", retry_in=0)
    board.park("build.f1a1.available", "no space left")
    source = command.path.parent / "list"
    source.write_text(f"{command('ls', 'state=failed', 'reason~space')}\n")
    said = command.run("requeue", "--from", str(source))
    advice = re.search("the `(.*)` of each line of `dibs (.*)`", said.stdout.decode())
    assert advice is not None, said
    row = json.loads(command(*advice[2].split(), "reason~space"))
    source.write_text(f"{row[advice[1]]}\n")
    assert command("requeue", "--from", str(source)).endswith("→ build.f1.available")


def test_a_line_of_a_list_that_is_no_name_says_what_to_give(command: Command) -> None:
    board = dibs.open(command.path)
    board.add("notes")
    board.park("notes.available", "later")
    source = command.path.parent / "list"
    source.write_text(f"{'x' * 200}\n{command('ls', 'state=failed')}\n")
    done = command.run("requeue", "--from", str(source))
    assert done.returncode == 3
    assert done.stdout.count(b"it is neither an exact name nor an id: give one per line") == 2


def test_undo_names_the_last_act_that_can_be_undone(command: Command) -> None:
    board = dibs.open(command.path)
    for ident in ("a", "b"):
        board.add(ident)
    name = command("park", "a.available")
    claim = board.claim("b")
    assert claim is not None
    command("force-release", claim.name, "--reason", "stuck")
    said = command("undo", code=3)
    assert "cannot undo the force-release of 'b'" in said
    assert "the last act that can be undone is the park of 'a' by tester@" in said
    assert said.endswith(f"`dibs undo {name} a.available` undoes it")
    said = command("undo", "c", code=3)
    assert said.startswith("dibs: there is nothing to undo on 'c': ")
    assert "the log has no act on it, or all are undone" in said


def test_undo_says_that_an_act_was_one_of_many(command: Command) -> None:
    board = dibs.open(command.path)
    source = command.path.parent / "list"
    for ident in ("a", "b", "c"):
        board.add(ident)
        board.park(f"{ident}.available", "later")
    source.write_text("a\nb\nc\n")
    assert "one of" not in command("undo", code=2)
    assert command.run("requeue", "--from", str(source)).returncode == 0
    said = command("undo", code=2)
    assert "the last act is the requeue of 'c'" in said
    assert "it was one of 3 tasks of that act: `dibs undo --all " in said
    assert said.endswith(" undoes them all")
    assert "one of 3 tasks" in command("undo", "a", code=2)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["pause", "--reason", "r", "--host=--"], ""),
        (["resume", "--host=--"], ""),
        (["add", "x", "--file=--"], "--: No such file or directory"),
        (["add", "x", "--max-waiting=--"], "'--'"),
        (["wait", "x", "--timeout=--"], "'--'"),
        (["stats", "--fail-if=--"], "'--'"),
        (["reap", "--every=--"], "'--'"),
        (["run", "--jobs=--", "--", "true"], "'--'"),
        (["run", "--log=--", "--", "true"], "'--'"),
    ],
)
def test_two_dashes_as_the_value_of_an_option_are_a_value(
    command: Command, argv: list[str], words: str
) -> None:
    board = dibs.open(command.path)
    done = command.run(*argv)
    said = done.stderr.decode()
    assert done.returncode == (2 if words else 0), said
    assert words in said
    assert len(said.splitlines()) <= 1
    assert {pause.host for pause in board.pauses()} <= {"--"}


@pytest.mark.parametrize("more", [[], ["--once"], ["age>5m"], ["--read-only"]])
def test_a_mistyped_board_is_reported_whatever_follows_it(
    command: Command, more: list[str]
) -> None:
    done = command.run("nosuchdir", *more)
    assert done.returncode == 2
    assert "'nosuchdir' is neither a verb nor a directory" in done.stderr.decode()
