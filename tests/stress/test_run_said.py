"""`dibs run`: notes, results and output of the command, limits on its time, and the breaker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dibs.model.breaker import Breaker
from dibs.model.errors import StorageError
from dibs.run.output_log import OutputLog
from tests.patience import PATIENCE
from tests.stress.running import DIBS, ENV, Site, ended, events, site, until

SECOND = 10**9


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        yield found


def said(place: Site, *argv: str, code: int = 0) -> bytes:
    """The output of a verb on the board."""
    done = subprocess.run(
        [*DIBS, "-d", str(place.path), *argv], env=ENV, capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == code, done
    return done.stdout


def kept(place: Site, claim: str) -> bytes:
    """The kept output of a claim, which has no gap."""
    found = place.board.output(claim)
    assert found is not None
    assert all(not missing for missing, _ in found.gaps())
    return b"".join(data for _, data in found.parts)


def says(text: str) -> str:
    """A program's statement that notes as any program can: without the inherited descriptor."""
    command = [*DIBS, "note", text]
    return f"import subprocess; subprocess.run({command!r}, check=True, close_fds=True)\n"


# Output


def test_both_outputs_pass_through_and_are_kept(place: Site) -> None:
    place.board.add("a")
    run = place.run("--log=64k", "--", "sh", "-c", "echo out; echo err >&2")
    assert ended(run, 0) == (b"out\n", b"err\n")
    assert sorted(kept(place, place.state("a").stem).split()) == [b"err", b"out"]
    assert sorted(said(place, "logs", "a").split()) == [b"err", b"out"]


def test_without_log_nothing_is_kept(place: Site) -> None:
    place.board.add("a")
    ended(place.run("--", "sh", "-c", "echo out"), 0)
    assert place.board.outputs("a") == []
    assert not (place.path / ".dibs/logs").exists()


def test_a_setting_of_the_board_keeps_output_and_an_option_turns_it_off(tmp_path: Path) -> None:
    with site(tmp_path / "board", run_log=4096) as place:
        place.board.add("a")
        ended(place.run("--", "sh", "-c", "echo out"), 0)
        assert kept(place, place.state("a").stem) == b"out\n"
        place.board.add("b")
        ended(place.run("--log=0", "--", "sh", "-c", "echo out"), 0)
        assert place.board.outputs("b") == []


def test_long_output_passes_through_completely_and_keeps_its_beginning_and_end(
    place: Site,
) -> None:
    place.board.add("a")
    program = "for n in range(600_000): sys.stdout.write(f'{n:09}\\n')\nsys.stdout.flush()"
    out, _ = ended(place.run("--log=64k", *place.python(program)), 0)
    data = b"".join(b"%09d\n" % n for n in range(600_000))
    assert out == data
    found = place.board.output(place.state("a").stem)
    assert found is not None
    assert (found.end, found.parts[0]) == (len(data), (0, data[:32768]))
    assert all(data[at : at + len(part)] == part for at, part in found.parts)
    assert data.endswith(found.parts[-1][1])
    total = sum(path.stat().st_size for path in (place.path / ".dibs/logs").iterdir())
    assert total <= 65536 + 64
    assert "bytes were not kept" in said(place, "logs", "a").decode()


def test_the_json_of_a_claim_follows_its_output_also_for_a_slow_reader(place: Site) -> None:
    place.board.add("a")
    run = place.run("--json", "--log", *place.python("os.write(1, b'x' * 100_000)"))
    until(lambda: place.state("a").state == "done")
    out, _ = ended(run, 0)
    assert out[:100_000] == b"x" * 100_000
    assert json.loads(out[100_000:])["status"] == "done"


def test_escape_codes_are_shown_as_text(place: Site) -> None:
    place.board.add("a")
    ended(place.run("--log", "--", "printf", r"\033[31mred\033[0m\tx\r\n"), 0)
    assert said(place, "logs", "a") == b"\\x1b[31mred\\x1b[0m\tx\\x0d\n"


def test_logs_follows_until_the_claim_ends(place: Site) -> None:
    place.board.add("a")
    program = (
        "print('first', flush=True)\nnote('up')\n"
        "while not os.path.exists(f'{notes}/go'): time.sleep(0.01)\nprint('last')"
    )
    run = place.run("--log", *place.python(program))
    place.note("up")
    follower = subprocess.Popen(
        [*DIBS, "-d", str(place.path), "logs", "a", "-f"], env=ENV, stdout=subprocess.PIPE
    )
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"first\n"
    (place.notes / "go").touch()
    ended(run, 0)
    assert follower.communicate(timeout=PATIENCE)[0] == b"last\n"
    assert follower.returncode == 0


def test_each_attempt_has_its_own_output(place: Site) -> None:
    place.board.add("a")
    for word in ("one", "two"):
        ended(place.run("--log", "--", "sh", "-c", f"echo {word}; exit 1"), 1)
    assert said(place, "logs", "a") == b"two\n"
    assert said(place, "logs", "a", "--attempt", "1") == b"one\n"
    said(place, "logs", "a", "--attempt", "9", code=3)
    said(place, "logs", "b", code=3)


def test_what_a_killed_run_printed_is_kept(place: Site) -> None:
    place.board.add("a")
    run = place.run("--log", "--ttl", "5", *place.python("print('words', flush=True)\nnote('up')\ntime.sleep(600)"))  # fmt: skip # noqa: E501
    place.note("up")
    claim = place.state("a").stem
    until(lambda: place.board.output(claim) is not None and kept(place, claim) == b"words\n")
    run.kill()
    until(lambda: place.state("a").state == "available")
    assert kept(place, claim) == b"words\n"


class StuckKeeper:
    """A keeper on a disk that hangs until it is released."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.called = threading.Event()
        self.parts: list[tuple[int, bytes]] = []

    def keep(self, data: bytes, at: int) -> None:
        self.called.set()
        assert self.free.wait(PATIENCE)
        self.parts.append((at, data))


def test_a_disk_that_hangs_neither_blocks_the_work_nor_fills_the_memory() -> None:
    keeper = StuckKeeper()
    log = OutputLog(keeper, 8192, print)
    log.offer(b"begin" + b"a" * 4091)
    assert keeper.called.wait(PATIENCE)
    for n in range(5000):  # returns at once, or the test would take forever
        log.offer(b"%07d\n" % n * 512)
    assert log._held <= 8192
    keeper.free.set()
    log.finish(PATIENCE)
    data = b"begin" + b"a" * 4091 + b"".join(b"%07d\n" % n * 512 for n in range(5000))
    assert keeper.parts[0] == (0, data[:4096])
    assert all(data[at : at + len(part)] == part for at, part in keeper.parts)
    assert keeper.parts[-1][1] == data[-4096:]


def test_the_beginning_is_kept_however_much_of_the_rest_is_dropped() -> None:
    keeper = StuckKeeper()
    log = OutputLog(keeper, 8192, print)
    log.offer(b"0123456789")
    assert keeper.called.wait(PATIENCE)
    data = b"0123456789" + b"".join(b"%07d\n" % n * 512 for n in range(5000))
    for at in range(10, len(data), 4096):
        log.offer(data[at : at + 4096])
    keeper.free.set()
    log.finish(PATIENCE)
    assert keeper.parts == [
        (0, data[:10]),
        (10, data[10:4096]),
        (len(data) - 4096, data[-4096:]),
    ]


class BrokenKeeper:
    """A keeper on a disk that is full."""

    def keep(self, data: bytes, at: int) -> None:
        raise StorageError("no space left")


def test_output_that_cannot_be_kept_is_reported_once() -> None:
    complaints: list[str] = []
    log = OutputLog(BrokenKeeper(), 8192, complaints.append)
    for _ in range(3):
        log.offer(b"x" * 5000)
    log.finish(PATIENCE)
    assert complaints == ["a part of the output was not kept: no space left"]


# Notes


def test_a_note_of_the_command_is_shown_and_stays_in_the_log(place: Site) -> None:
    place.board.add("a")
    run = place.run(*place.python(says("half done") + "note('up')\ntime.sleep(600)"))
    place.note("up")
    until(lambda: [e.note for e in place.board.entries()] == ["half done"])
    run.send_signal(signal.SIGTERM)
    ended(run, 143)
    assert place.board.log.of("a")[-1].note == "half done"


def test_the_last_note_counts_however_soon_the_command_ends(place: Site) -> None:
    place.board.add("a")
    notes = "os.write(int(os.environ['DIBS_NOTES'].split(':')[1]), b'one\\ntwo\\nlast\\n')"
    ended(place.run(*place.python(notes)), 0)
    assert place.board.log.of("a")[-1].note == "last"


def test_a_flood_of_notes_blocks_no_one(place: Site) -> None:
    place.board.add("a")
    flood = (
        "fd = int(os.environ['DIBS_NOTES'].split(':')[1])\n"
        "for n in range(200_000):\n"
        "    try: os.write(fd, b'x' * 300 + b'\\n')\n"
        "    except BlockingIOError: pass\n"
    )
    ended(place.run(*place.python(flood)), 0)
    assert place.board.log.of("a")[-1].note == "x" * 200


def test_a_note_without_a_run_is_written_by_the_name_of_the_claim(place: Site) -> None:
    place.board.add("a")
    claim = place.board.claim("a")
    assert claim is not None
    environment = ENV | {"DIBS_CLAIM": claim.name, "DIBS_BOARD": str(place.path)}
    subprocess.run([*DIBS, "note", "by hand"], env=environment, check=True, timeout=PATIENCE)
    assert [entry.note for entry in place.board.entries()] == ["by hand"]


def test_a_note_does_not_reach_a_run_of_another_claim(place: Site) -> None:
    """A script in a run that claims another task notes for that task."""
    place.board.add("a")
    place.board.add("b")
    inner = (
        f"import subprocess\ndibs = {[*DIBS, '-d', str(place.path)]!r}\n"
        "name = subprocess.run([*dibs, 'claim', 'b'], capture_output=True, text=True)\n"
        "env = os.environ | {'DIBS_CLAIM': name.stdout.strip()}\n"
        "subprocess.run([*dibs, 'note', 'for b'], env=env, check=True)\n"
    )
    ended(place.run("a", *place.python(inner)), 0)
    assert place.board.log.of("a")[-1].note == ""
    assert [e.note for e in place.board.entries() if e.id == "b"] == ["for b"]


def test_a_note_to_a_run_that_is_gone_is_refused_and_writes_nowhere(
    place: Site, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    with file.open("w") as other:
        address = f"{os.getpid()}:{other.fileno()}:{os.fstat(other.fileno()).st_ino}"
        claim = "a.f1.me-0123456789"
        environment = ENV | {"DIBS_NOTES": f"{address}:{claim}", "DIBS_CLAIM": claim}
        done = subprocess.run(
            [*DIBS, "note", "text"], env=environment, capture_output=True, timeout=PATIENCE
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)
    assert file.read_bytes() == b""


def test_a_note_outside_of_any_claim_is_a_usage_error(place: Site) -> None:
    said(place, "note", "text", code=2)


# Results


def test_what_the_command_writes_to_its_result_is_committed_with_it(place: Site) -> None:
    place.board.add("a")
    ended(place.run("--", "sh", "-c", 'echo 42 > "$DIBS_RESULT"'), 0)
    assert place.board.result(place.state("a")) == b"42\n"
    assert json.loads(said(place, "--json", "show", "a"))["result"] == "42\n"


def test_each_command_of_a_loop_has_its_own_result_and_nothing_is_left(
    place: Site, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for ident in ("a", "b", "c"):
        place.board.add(ident)
    work = '[ $DIBS_ID = b ] || echo $DIBS_ID > "$DIBS_RESULT"'
    ended(place.run("--loop", "--", "sh", "-c", work, env={"TMPDIR": str(scratch)}), 0)
    results = [place.board.result(place.state(ident)) for ident in ("a", "b", "c")]
    assert results == [b"a\n", None, b"c\n"]
    assert list(scratch.iterdir()) == []


def test_a_killed_run_leaves_no_folder_of_results(place: Site, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    place.board.add("a")
    program = "open(os.environ['DIBS_RESULT'], 'w').write('x')\nnote('up')\ntime.sleep(600)"
    run = place.run("--ttl", "5", *place.python(program), env={"TMPDIR": str(scratch)})
    place.note("up")
    run.kill()
    until(lambda: not list(scratch.iterdir()))
    until(lambda: place.state("a").state == "available")


@pytest.mark.parametrize(
    ("work", "why"),
    [
        ('head -c 65537 /dev/zero > "$DIBS_RESULT"', "its result has 65,537 bytes"),
        ('mkdir "$DIBS_RESULT"', "its result is not a file"),
        ('ln -s /etc/passwd "$DIBS_RESULT"', "its result cannot be read"),
        ('mkfifo "$DIBS_RESULT"', "its result is not a file"),
    ],
)
def test_a_result_that_cannot_be_used_fails_the_attempt(place: Site, work: str, why: str) -> None:
    place.board.add("a")
    ended(place.run("--", "sh", "-c", work), 1)
    (reason,) = place.reasons("a", "fail")
    assert reason.startswith(why)
    assert place.state("a").attempts == 1


def test_a_command_that_committed_its_claim_keeps_that_result(place: Site) -> None:
    for ident in "ab":  # the refusal of one result does not end the loop
        place.board.add(ident)
    script = f"{' '.join(DIBS)} done $DIBS_CLAIM && echo 42 > $DIBS_RESULT"
    _, err = ended(place.run("--loop", "--", "sh", "-c", script), 3)
    for ident in "ab":
        assert f"dibs: {ident}.f1." in err.decode(), err
        assert place.state(ident).state == "done"
        assert place.board.result(place.state(ident)) is None
        assert place.reasons(ident, "refused") == []
    assert err.count(b"is done already, and not with this result") == 2


def test_a_lock_has_no_result(place: Site) -> None:
    ended(place.run("--lock", "door", "--", "sh", "-c", '[ -z "${DIBS_RESULT+x}" ]'), 0)


def test_done_takes_a_result_from_a_file_or_standard_input(place: Site, tmp_path: Path) -> None:
    file = tmp_path / "answer"
    file.write_bytes(b"42")
    for ident, source, data in (("a", str(file), b""), ("b", "-", b"43")):
        place.board.add(ident)
        claim = place.board.claim(ident)
        assert claim is not None
        command = [*DIBS, "-d", str(place.path), "done", claim.name, "--result", source]
        subprocess.run(command, env=ENV, input=data, check=True, timeout=PATIENCE)
    assert [place.board.result(place.state(i)) for i in ("a", "b")] == [b"42", b"43"]


def test_done_with_a_result_that_is_too_long_commits_nothing(place: Site, tmp_path: Path) -> None:
    file = tmp_path / "answer"
    file.write_bytes(b"x" * 65_537)
    place.board.add("a")
    claim = place.board.claim("a")
    assert claim is not None
    said(place, "done", claim.name, "--result", str(file), code=2)
    said(place, "done", claim.name, "--result", str(tmp_path / "missing"), code=2)
    claim.verify()


# Limits


def test_work_that_takes_too_long_is_ended_and_failed(place: Site) -> None:
    place.board.add("a")
    run = place.run("--timeout", "0.3", *place.python("note('up')\ntime.sleep(600)"))
    _, err = ended(run, 124)
    assert re.fullmatch(rb"dibs: failed a\.f1\.\S+: timed out after 0\.3 s\n", err), err
    assert place.reasons("a", "fail") == ["timed out after 0.3 s"]
    assert place.state("a").attempts == 1


def test_work_that_ends_by_itself_on_the_signal_of_a_limit_has_failed_too(place: Site) -> None:
    place.board.add("a")
    program = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\ntime.sleep(600)"
    ended(place.run("--timeout", "1", *place.python(program)), 124)
    assert place.state("a").state == "available"


def test_work_that_says_nothing_is_ended_and_failed(place: Site) -> None:
    place.board.add("a")
    run = place.run("--idle", "3", *place.python("print('words', flush=True)\ntime.sleep(600)"))
    out, _ = ended(run, 124)
    assert out == b"words\n"
    assert place.reasons("a", "fail") == ["idle for 3 s: no output and no note"]


@pytest.mark.parametrize("where", ["1", "2", "$(echo $DIBS_NOTES | cut -d: -f2)"])
def test_output_and_notes_are_signs_of_work(place: Site, where: str) -> None:
    place.board.add("a")
    sign = f"to=/proc/self/fd/{where}; for n in $(seq 24); do echo $n > $to; sleep 0.25; done"
    ended(place.run("--idle", "4", "--", "sh", "-c", sign), 0)


def test_limits_are_settings_of_the_board_too(tmp_path: Path) -> None:
    with site(tmp_path / "board", run_timeout=0.3, run_idle=60) as place:
        place.board.add("a")
        ended(place.run("--", "sleep", "600"), 124)
        ended(place.run("--timeout", "0", "--", "true"), 0)


def test_a_lock_is_released_when_a_limit_ends_its_work(place: Site) -> None:
    ended(place.run("--lock", "door", "--timeout", "0.3", "--", "sleep", "600"), 124)
    assert place.reasons("door", "release") == ["timed out after 0.3 s"]


# The breaker


def test_a_breaker_opens_after_failures_in_a_row_and_doubles_its_waits() -> None:
    breaker, now, waits = Breaker(5), 0, []
    for n in range(12):
        name = f"c{n}"
        assert breaker.allows()
        breaker.began(name)
        if breaker.ended(name, "failed", now):
            waits.append(breaker.wait)
            assert not breaker.allows()
            assert not breaker.over(now + breaker.wait * SECOND - 1)
            now += breaker.wait * SECOND
            assert breaker.over(now)
    assert waits == [5, 10, 20, 40, 60, 60, 60, 60]


def test_a_success_closes_a_breaker() -> None:
    breaker, now = Breaker(2), 0
    for outcome in ("failed", "done", "failed", "released"):
        breaker.began("c")
        assert not breaker.ended("c", outcome, now)
    breaker.began("d")
    assert breaker.ended("d", "failed", now)
    assert breaker.over(5 * SECOND)
    breaker.began("probe")
    assert not breaker.allows()
    assert not breaker.ended("probe", "done", now)
    assert (breaker.allows(), breaker.failures, breaker.wait) == (True, 0, 0)


def test_work_that_began_before_the_wait_neither_opens_nor_prolongs_it() -> None:
    breaker = Breaker(2)
    for name in ("a", "b", "c", "d"):
        breaker.began(name)
    assert [breaker.ended(name, "failed", 0) for name in ("a", "b", "c")] == [False, True, False]
    assert breaker.over(5 * SECOND)
    breaker.began("probe")
    assert not breaker.ended("d", "failed", 5 * SECOND)
    assert not breaker.allows()
    assert breaker.ended("probe", "failed", 5 * SECOND)
    assert breaker.wait == 10


def test_a_breaker_of_0_never_opens() -> None:
    breaker = Breaker(0)
    for _ in range(20):
        breaker.began("c")
        assert not breaker.ended("c", "failed", 0)


def test_a_loop_that_only_fails_waits_after_five_and_then_tries_one(place: Site) -> None:
    for n in range(9):
        place.board.add(f"t{n}")
    run = place.run("--loop", "--log-json", "--", "sh", "-c", "[ -e ../up ] || exit 7",
                    cwd=place.notes)  # fmt: skip
    until(lambda: len(list(place.board.log.oldest_first())) >= 9 + 10)
    (place.notes.parent / "up").touch()
    _, err = ended(run, 7)
    found = [event for event in events(err) if event["event"] != "renewed"]
    at = [event["event"] for event in found].index("breaker")
    assert (found[at]["failures"], found[at]["wait"]) == (5, 5)
    assert [event["event"] for event in found[:at]] == ["acquired", "failed"] * 5
    rest = [event["event"] for event in found[at + 1 :]]
    while rest[1] == "failed":  # the machine was busy, and the probe came before the repair
        assert rest[:3] == ["acquired", "failed", "breaker"]
        rest = rest[3:]
    assert rest == ["acquired", "done"] * 9
    assert {place.state(f"t{n}").state for n in range(9)} == {"done"}


def test_a_signal_ends_a_loop_that_waits_for_its_breaker(place: Site) -> None:
    for n in range(3):
        place.board.add(f"t{n}")
    run = place.run("--loop", "--breaker", "2", "--", "false")
    assert run.stderr is not None
    line = run.stderr.readline()
    assert line.startswith(b"dibs: 2 failures in a row: waiting 5 s")
    run.send_signal(signal.SIGTERM)
    ended(run, 143)


def test_without_a_breaker_a_loop_goes_on_failing(place: Site) -> None:
    for n in range(3):
        place.board.add(f"t{n}")
    _, err = ended(place.run("--loop", "--breaker", "0", "--", "false"), 1)
    assert err == b""
    assert {place.state(f"t{n}").state for n in range(3)} == {"failed"}
