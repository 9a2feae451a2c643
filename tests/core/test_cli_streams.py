"""Where the answer goes: streams that are full or closed, readers that leave, no directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
    """A command whose output is buffered, or is not."""
    command.env.pop("PYTHONUNBUFFERED", None)
    command.env |= request.param
    return command


@pytest.mark.parametrize("argv", [["ls"], ["ls", "--json"], ["stats"], ["--help"], ["--version"]])
def test_a_full_standard_output_is_one_line_and_exit_1(either: Command, argv: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        process = start(either, *argv, stdout=full.fileno())
        told = process.communicate(timeout=PATIENCE)[1].decode()
    assert (process.returncode, len(told.splitlines())) == (1, 1), told
    assert "standard output: No space left on device" in told


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
def test_a_refusal_that_nobody_reads_keeps_its_exit_code(
    either: Command, argv: list[str], code: int
) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with open("/dev/full", "wb") as full:
        for stdout in (writable, full.fileno()):
            process = start(either, "--json", *argv, stdout=stdout)
            assert (process.communicate(timeout=PATIENCE)[1], process.returncode) == (b"", code)
    os.close(writable)


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["ls"]])
def test_help_that_nobody_reads_is_no_error(either: Command, argv: list[str]) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    process = start(either, *argv, stdout=writable)
    os.close(writable)
    told = process.communicate(timeout=PATIENCE)[1]
    assert (process.returncode, b"Traceback" in told) == (0, False)


@pytest.mark.parametrize("verb", [["ls"], ["add", "x"], ["paths"], ["init"], ["run", "--", "true"]])
def test_a_current_directory_that_is_gone_is_one_line(command: Command, verb: list[str]) -> None:
    folder = command.path.parent / "gone"
    folder.mkdir()
    line = f'cd {folder} && rmdir {folder} && exec "$0" -m dibs "$@"'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, *verb],
        env=command.env,
        capture_output=True,
        timeout=PATIENCE,
    )
    told = done.stderr.decode()
    assert (done.returncode, told.startswith("dibs: the current directory: ")) == (1, True), done
    assert len(told.splitlines()) == 1


def test_run_tells_how_each_claim_ended_as_it_ends(either: Command) -> None:
    dibs.open(either.path).add("b")
    hold = either.path.parent / "hold"
    os.mkfifo(hold)
    work = 'echo "$DIBS_ID"; [ "$DIBS_ID" = a ] || read line < "$0"'
    process = start(
        either, "--json", "run", "--loop", "--", "sh", "-c", work, str(hold), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"a\n"
    told = json.loads(process.stdout.readline())
    assert (told["id"], told["status"]) == ("a", "done")
    assert process.stdout.readline() == b"b\n"
    hold.write_text("go\n")
    assert json.loads(process.stdout.readline())["id"] == "b"
    assert process.communicate(timeout=PATIENCE)[1] == b""
    assert process.returncode == 0


def test_run_goes_on_working_when_nobody_reads_how_its_claims_end(either: Command) -> None:
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
def test_nothing_is_claimed_where_standard_output_is_closed(
    command: Command, verb: list[str]
) -> None:
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
    """A standard output that takes nothing: a full disk, or a pipe whose reader has left."""
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
def test_a_claim_whose_name_cannot_be_printed_is_given_back(
    either: Command, kind: str, form: list[str], verb: list[str]
) -> None:
    board = dibs.open(either.path)
    with open_unprintable(kind) as stdout:
        process = start(either, *form, *verb, stdout=stdout)
        told = process.communicate(timeout=PATIENCE)[1].decode()
    assert (process.returncode, len(told.splitlines())) == (1, 1), told
    assert "standard output" in told
    assert "was given back" in told
    assert not any(task.live for task in board.snapshot().tasks.values())
    claim = board.claim("a") if verb[0] == "claim" else board.acquire("door")
    assert claim is not None
    assert (claim.fence, claim.task.attempts) == (2, 0)


@pytest.mark.parametrize("kind", ["full", "left"])
def test_a_resumed_claim_whose_new_name_cannot_be_printed_is_given_back(
    either: Command, kind: str
) -> None:
    board = dibs.open(either.path)
    old = board.claim("a")
    assert old is not None
    with open_unprintable(kind) as stdout:
        process = start(either, "claim", "a", "--resume", old.name, stdout=stdout)
        told = process.communicate(timeout=PATIENCE)[1].decode()
    assert (process.returncode, "was given back" in told) == (1, True), told
    assert [task.state for task in board.find("a")] == ["available"]


@pytest.mark.parametrize("kind", ["full", "left"])
def test_a_lease_that_was_known_stays_where_its_renewal_cannot_be_printed(
    either: Command, kind: str
) -> None:
    board = dibs.open(either.path)
    lease = board.acquire("door")
    with open_unprintable(kind) as stdout:
        process = start(either, "acquire", "door", "--lease", lease.name, stdout=stdout)
        told = process.communicate(timeout=PATIENCE)[1].decode()
    assert "was given back" not in told
    lease.verify()


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["forget", "--from", "/dev/zero"], 2, "at most 64 MiB"),
        (["requeue", "--from", "/dev/zero"], 2, "at most 64 MiB"),
    ],
)
def test_what_is_larger_than_memory_is_one_line(
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
    """What the longer one takes more is far less than what it is longer."""
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


def test_several_tasks_share_what_comes_through_a_pipe(command: Command) -> None:
    payload = bytes(range(256)) * 9000
    verb = [sys.executable, "-m", "dibs", "-d", str(command.path), "add", "x", "y", "--file", "-"]
    subprocess.run(verb, env=command.env, input=payload, check=True, timeout=PATIENCE)
    for ident in "xy":
        assert (command.path / f"{ident}.available").read_bytes() == payload
