"""Streams that are full or closed, readers that leave, and a missing directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dibs
from tests.core.test_cli import Command
from tests.core.tools import settle
from tests.patience import PATIENCE

GONE = "a.f1.me-0123456789"


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    dibs.open(path).add("a")
    return Command(path)


def start(
    command: Command, *argv: str, stdout: int, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    verb = [sys.executable, "-m", "dibs", "-d", str(command.path), *argv]
    return subprocess.Popen(verb, env=command.env, stdout=stdout, stderr=stderr)


@pytest.fixture(params=[{}, {"PYTHONUNBUFFERED": "1"}])
def either(request: pytest.FixtureRequest, command: Command) -> Command:
    """A command with buffered or unbuffered output."""
    command.env.pop("PYTHONUNBUFFERED", None)
    command.env |= request.param
    return command


PRINTING = [["ls"], ["ls", "--json"], ["stats"], ["--help"], ["--version"], ["ls", "--help"]]


@pytest.mark.parametrize("argv", PRINTING)
def test_a_closed_standard_output_is_one_line_and_exit_1(either: Command, argv: list[str]) -> None:
    verb = [sys.executable, "-m", "dibs", "-d", str(either.path), *argv]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *verb],
        env=either.env,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
    assert "standard output: closed" in done.stderr


STEPS = {
    "add": (["add", "b", "a", "c", "d"], {"a": "failed", "b": "available", "d": "available"}),
    "requeue": (["requeue", "--from", "LIST"], {"a": "available", "x": "available"}),
}


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("verb", STEPS)
def test_a_closed_standard_output_does_not_stop_a_verb_between_its_steps(
    either: Command, form: list[str], verb: str
) -> None:
    board, (words, states) = dibs.open(either.path), STEPS[verb]
    board.add("x")
    for ident in ("a", "x"):
        for _ in range(board.settings.max_attempts):
            claim = board.claim(ident)
            assert claim is not None
            claim.fail()
    list_file = either.path.parent / "list"
    list_file.write_text("a\nx\n")
    words = [str(list_file) if word == "LIST" else word for word in words]
    done = close_stdout(either, *form, *words)
    assert done.returncode == 1, done
    assert done.stderr.endswith("standard output: closed: check the board before you try again\n")
    for ident, state in states.items():
        assert [task.state for task in board.find(ident)] == [state]
    if verb == "requeue":  # its ledger makes it one step of undo
        assert [len(step) for step in board.undo_steps()] == [2]


def test_a_janitor_with_a_closed_standard_output_continues(either: Command) -> None:
    board = dibs.open(either.path)
    line = [sys.executable, "-m", "dibs", "-d", str(either.path), "reap", "--every", "0.05"]
    janitor = subprocess.Popen(
        ["sh", "-c", 'exec "$@" >&-', "sh", *line], env=either.env, stderr=subprocess.PIPE
    )
    try:
        for _ in range(2):
            with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as holder:
                assert board.claim("a", process=holder.pid) is not None
            until = time.monotonic() + PATIENCE
            while board.find("a")[0].live and time.monotonic() < until:
                time.sleep(0.02)
            assert not board.find("a")[0].live
        assert janitor.poll() is None
    finally:
        janitor.kill()
        janitor.communicate()


def close_stdout(command: Command, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a verb whose standard output is closed."""
    line = [sys.executable, "-m", "dibs", "-d", str(command.path), *argv]
    return subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *line],
        env=command.env,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("argv", PRINTING)
def test_a_full_standard_output_is_one_line_and_exit_1(either: Command, argv: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        process = start(either, *argv, stdout=full.fileno())
        errors = process.communicate(timeout=PATIENCE)[1].decode()
    assert (process.returncode, len(errors.splitlines())) == (1, 1), errors
    assert "standard output: No space left on device" in errors


@pytest.mark.parametrize(
    ("argv", "code"),
    [(["done", GONE], 5), (["show", "none"], 3), (["ls"], 0), (["none"], 2), (["add"], 2)],
)
def test_a_full_standard_error_changes_no_exit_code(
    either: Command, argv: list[str], code: int
) -> None:
    with open("/dev/full", "wb") as full:
        process = start(either, *argv, stdout=subprocess.DEVNULL, stderr=full.fileno())
        assert process.wait(PATIENCE) == code


@pytest.mark.parametrize(("argv", "code"), [(["done", GONE], 5), (["show", "none"], 3)])
def test_a_refusal_to_a_closed_pipe_keeps_its_exit_code(
    either: Command, argv: list[str], code: int
) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with open("/dev/full", "wb") as full:
        for stdout in (writable, full.fileno()):
            process = start(either, "--json", *argv, stdout=stdout)
            assert (process.communicate(timeout=PATIENCE)[1], process.returncode) == (b"", code)
    os.close(writable)


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["ls"], ["ls", "--help"]])
def test_help_to_a_closed_pipe_is_no_error(either: Command, argv: list[str]) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    process = start(either, *argv, stdout=writable)
    os.close(writable)
    errors = process.communicate(timeout=PATIENCE)[1]
    assert (process.returncode, b"Traceback" in errors) == (0, False)


@pytest.mark.parametrize("verb", [["ls"], ["add", "x"], ["paths"], ["init"], ["run", "--", "true"]])
def test_a_missing_current_directory_is_reported_in_one_line(
    command: Command, verb: list[str]
) -> None:
    folder = command.path.parent / "gone"
    folder.mkdir()
    line = f'cd {folder} && rmdir {folder} && exec "$0" -m dibs "$@"'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, *verb],
        env=command.env,
        capture_output=True,
        timeout=PATIENCE,
    )
    errors = done.stderr.decode()
    assert (done.returncode, errors.startswith("dibs: the current directory: ")) == (1, True), done
    assert len(errors.splitlines()) == 1


def test_run_reports_each_claim_as_it_ends(either: Command) -> None:
    dibs.open(either.path).add("b")
    hold = either.path.parent / "hold"
    os.mkfifo(hold)
    work = 'echo "$DIBS_ID"; [ "$DIBS_ID" = a ] || read line < "$0"'
    process = start(
        either, "--json", "run", "--loop", "--", "sh", "-c", work, str(hold), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"a\n"
    event = json.loads(process.stdout.readline())
    assert (event["id"], event["status"]) == ("a", "done")
    assert process.stdout.readline() == b"b\n"
    hold.write_text("go\n")
    assert json.loads(process.stdout.readline())["id"] == "b"
    assert process.communicate(timeout=PATIENCE)[1] == b""
    assert process.returncode == 0


def test_run_continues_when_the_reader_of_its_output_leaves(either: Command) -> None:
    board = dibs.open(either.path)
    board.add("b")
    readable, writable = os.pipe()
    os.close(readable)
    work = '[ "$DIBS_ID" = a ] || sleep 0.5'
    process = start(either, "--json", "run", "--jobs", "2", "--", "sh", "-c", work, stdout=writable)
    os.close(writable)
    assert process.communicate(timeout=PATIENCE)[1] == b""
    assert (process.returncode, board.snapshot().counts()["done"]) == (0, 2)


@pytest.mark.parametrize("verb", [["claim"], ["claim", "a"], ["acquire", "door"]])
def test_nothing_is_claimed_if_standard_output_is_closed(command: Command, verb: list[str]) -> None:
    line = [sys.executable, "-m", "dibs", "-d", str(command.path), *verb]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *line],
        env=command.env,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
    assert "standard output is closed" in done.stderr
    assert [task.name for task in dibs.open(command.path).snapshot().tasks.values()] == [
        "a.available"
    ]


@contextmanager
def open_unprintable(kind: str) -> Iterator[int]:
    """A standard output that accepts nothing: a full disk, or a pipe without a reader."""
    if kind == "full":
        stdout = os.open("/dev/full", os.O_WRONLY)
    else:
        readable, stdout = os.pipe()
        os.close(readable)
    try:
        yield stdout
    finally:
        os.close(stdout)


@pytest.mark.parametrize("kind", ["full", "left"])
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("verb", [["claim"], ["claim", "a"], ["acquire", "door"]])
def test_a_claim_whose_name_cannot_be_printed_is_released(
    either: Command, kind: str, form: list[str], verb: list[str]
) -> None:
    board = dibs.open(either.path)
    with open_unprintable(kind) as stdout:
        process = start(either, *form, *verb, stdout=stdout)
        errors = process.communicate(timeout=PATIENCE)[1].decode()
    assert (process.returncode, len(errors.splitlines())) == (1, 1), errors
    assert "standard output" in errors
    assert "was released" in errors
    assert not any(task.live for task in board.snapshot().tasks.values())
    claim = board.claim("a") if verb[0] == "claim" else board.acquire("door")
    assert claim is not None
    assert (claim.fence, claim.task.attempts) == (2, 0)


@pytest.mark.parametrize("kind", ["full", "left"])
def test_a_resumed_claim_whose_new_name_cannot_be_printed_is_released(
    either: Command, kind: str
) -> None:
    board = dibs.open(either.path)
    old = board.claim("a")
    assert old is not None
    with open_unprintable(kind) as stdout:
        process = start(either, "claim", "a", "--resume", old.name, stdout=stdout)
        errors = process.communicate(timeout=PATIENCE)[1].decode()
    assert (process.returncode, "was released" in errors) == (1, True), errors
    assert [task.state for task in board.find("a")] == ["available"]


@pytest.mark.parametrize("kind", ["full", "left"])
def test_a_known_claim_stays_if_its_renewal_cannot_be_printed(either: Command, kind: str) -> None:
    board = dibs.open(either.path)
    lease = board.acquire("door")
    with open_unprintable(kind) as stdout:
        process = start(either, "acquire", "door", "--lease", lease.name, stdout=stdout)
        errors = process.communicate(timeout=PATIENCE)[1].decode()
    assert "was released" not in errors
    lease.verify()


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["forget", "--from", "/dev/zero"], 2, "at most 64 MiB"),
        (["requeue", "--from", "/dev/zero"], 2, "at most 64 MiB"),
    ],
)
def test_input_larger_than_memory_is_refused_in_one_line(
    command: Command, argv: list[str], code: int, words: str
) -> None:
    line = [sys.executable, "-m", "dibs", "-d", str(command.path), *argv]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", *line],
        env=command.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1), done
    assert words in done.stderr


@pytest.mark.parametrize("piped", [False, True])
def test_a_payload_of_any_length_takes_little_memory(
    command: Command, scratch: Path, piped: bool
) -> None:
    """The extra memory for the longer payload is far below its extra length."""
    peaks = {}
    for size in (1, 96 << 20):
        file = scratch / f"payload-{size}"
        with open(file, "wb") as payload:
            payload.truncate(size - 1)
            payload.seek(size - 1)
            payload.write(b".")
        argv = ["add", f"a{size}", f"b{size}", "--file", "-" if piped else str(file)]
        with subprocess.Popen(["cat", str(file)], stdout=subprocess.PIPE) as cat:
            verb = [sys.executable, "-m", "dibs", "-d", str(command.path), *argv]
            process = subprocess.Popen(
                verb, env=command.env, stdin=cat.stdout, stdout=subprocess.DEVNULL
            )
            assert cat.stdout is not None
            cat.stdout.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks[size] = usage.ru_maxrss << 10
        for ident in "ab":
            added = command.path / f"{ident}{size}.available"
            assert added.stat().st_size == size
            with open(added, "rb") as source:
                source.seek(-1, os.SEEK_END)
                assert source.read() == b"."
            added.unlink()
    assert peaks[96 << 20] - peaks[1] < 32 << 20, peaks


def test_several_tasks_share_one_payload_from_a_pipe(command: Command) -> None:
    payload = bytes(range(256)) * 9000
    verb = [sys.executable, "-m", "dibs", "-d", str(command.path), "add", "x", "y", "--file", "-"]
    subprocess.run(verb, env=command.env, input=payload, check=True, timeout=PATIENCE)
    for ident in "xy":
        assert (command.path / f"{ident}.available").read_bytes() == payload


MANY = {
    "add": (["add", *(f"t{n}" for n in range(9))], "available"),
    "requeue": (["requeue", "--from", "LIST"], "available"),
    "forget": (["forget", "--from", "LIST"], ""),
    "undo": (["undo", "--all"], "failed"),
}


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("verb", MANY)
def test_a_reader_that_leaves_does_not_stop_an_act_on_many(
    either: Command, form: list[str], verb: str
) -> None:
    board, (words, state) = dibs.open(either.path), MANY[verb]
    idents = [f"t{n}" for n in range(9)]
    list_file = either.path.parent / "list"
    list_file.write_text("".join(f"{ident}\n" for ident in idents))
    for ident in idents if verb != "add" else ():
        board.add(ident)
        claim = board.claim(ident)
        assert claim is not None
        if verb == "forget":
            claim.done()
        else:
            board.park(claim.name, "out")
    if verb == "forget":
        assert board.purge(0) == len(idents)
    if verb == "undo":
        either("requeue", "--from", str(list_file))
        event = next(iter(board.undo_steps()))[0]
        words = [*words, event.dst, event.src]
    words = [str(list_file) if word == "LIST" else word for word in words]
    with open_unprintable("left") as stdout:
        process = start(either, *form, *words, stdout=stdout)
        errors = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == 1, errors
    assert errors.endswith("standard output: Broken pipe: check the board before you try again\n")
    if verb == "forget":
        board.add(idents[-1])  # an id that is not free is refused
        return
    assert [task.state for ident in idents for task in board.find(ident)] == [state] * 9


@pytest.mark.parametrize(
    "verb", [["purge", "--done", "--older-than", "1h"], ["resume"], ["reap"], ["check", "--repair"]]
)
def test_an_act_on_many_whose_answer_no_one_reads_is_exit_1(
    either: Command, verb: list[str]
) -> None:
    board = dibs.open(either.path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as holder:
        assert board.claim("a", process=holder.pid) is not None
    board.pause_claims("deploy")
    litter = either.path / ".dibs/records/b.f1.me-0123456789"
    litter.touch()
    with open_unprintable("left") as stdout:
        process = start(either, *verb, stdout=stdout)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    if verb == ["resume"]:
        assert board.pauses() == ()
    if verb == ["reap"]:
        assert not board.find("a")[0].live
    if verb == ["check", "--repair"]:
        assert not litter.exists()


def test_a_janitor_whose_reader_leaves_finishes_its_pass_and_reports_it(either: Command) -> None:
    board = dibs.open(either.path)
    for ident in ("due-1", "due-2"):
        (either.path / f"{ident}.f0n1.later").touch()
    with open_unprintable("left") as stdout:
        process = start(either, "reap", "--every", "60", stdout=stdout)
        errors = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == 1
    assert errors.endswith("standard output: Broken pipe: check the board before you try again\n")
    assert [task.state for ident in ("due-1", "due-2") for task in board.find(ident)] == [
        "available"
    ] * 2


@pytest.mark.parametrize(
    "argv",
    [
        ("add", "b", "--file", "-"),
        ("add", "b", "c", "--file", "-"),
        ("requeue", "--from", "-"),
        ("answer", GONE, "-"),
        ("done", GONE, "--result", "-"),
    ],
)
def test_a_closed_standard_input_is_no_empty_text(command: Command, argv: tuple[str, ...]) -> None:
    done = subprocess.run(
        [
            "sh",
            "-c",
            'exec "$@" <&-',
            "sh",
            sys.executable,
            "-m",
            "dibs",
            "-d",
            command.path,
            *argv,
        ],
        env=command.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("dibs: standard input is closed: give `-` only with something to read\n")
    assert not dibs.open(command.path).find("b")
