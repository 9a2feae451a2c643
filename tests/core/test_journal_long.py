"""Journals that are long, many or invalid: which parts are read, and how much memory it takes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import dibs
from dibs.cli.stats import gather
from dibs.files import journal, journal_chain, journal_reader
from dibs.files.board_files import BoardFiles
from dibs.files.engine import FilesBoard, open_directory
from dibs.files.journal_chain import MOST
from dibs.files.port import Stat
from dibs.model.events import INTENT, Event, outcomes, unanswered
from dibs.model.rates import WINDOW, Rates
from tests.core.test_cli import Command
from tests.core.test_journal import Counted
from tests.core.tools import News, Place, opened, settle
from tests.patience import PATIENCE

SPARSE = 1 << 40


def line(event: dibs.Event) -> bytes:
    """The line that a writer appends for an event."""
    return journal._line(*event)


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    open_directory(path, create=True)
    return Command(path)


def event(at: float, verb: str, ident: str = "x") -> Event:
    return Event(
        round(at, 3), verb, ident, f"{ident}.f1.w-0123456789.claimed", "", "worker-7@web-3"
    )


def written(board: Path, file: str, *events: Event) -> Path:
    """Write a journal of another host with these events."""
    folder = board / ".dibs/journal"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(b"".join(map(line, events)))
    return folder / file


def sparse(board: Path) -> Path:
    """Make a sparse journal as long as a disk."""
    path = written(board, "web-9-aa.jsonl")
    os.truncate(path, SPARSE)
    return path


def errors_of(command: Command, *argv: str, code: int = 0) -> str:
    """The standard error of a verb."""
    done = command.run(*argv)
    assert done.returncode == code
    return done.stderr.decode()


# Rates


def test_every_event_of_the_last_ten_minutes_counts_in_a_journal_of_any_length(
    command: Command,
) -> None:
    now = time.time()
    fails = [event(now - WINDOW + 5 + n / 100, "fail") for n in range(51)]
    dones = [event(now - WINDOW + 6 + n * 0.0148, "done", f"t-{n}") for n in range(40_000)]
    path = written(command.path, "web-1-aa.jsonl", event(now - 5000, "add"), *fails, *dones)
    assert path.stat().st_size > 5 << 20
    figures = gather(open_directory(command.path))
    assert figures.values["dones/min"] == pytest.approx(4000)
    assert figures.values["fails/min"] == pytest.approx(5.1)
    assert figures.complete
    assert "fails/min>=5 holds" in errors_of(command, "stats", "--fail-if", "fails/min>=5", code=6)


def test_events_of_another_implementation_count_too(place: Place) -> None:
    now = time.time()
    path = written(place.path, "web-1-aa.jsonl", event(now - 5000, "add"))
    with path.open("ab") as file:
        file.write(b'{"verb":"done","at":%d,"id":"x"}\n' % now)
        file.write(b'torn {"at": \n' + line(event(now, "done")) + b'{"at": 1, "ver')
    assert gather(place.board).values["dones/min"] == pytest.approx(0.2)


def test_a_rate_covers_the_time_that_the_journals_reach_back(place: Place) -> None:
    now = time.time()
    events = [event(now - 120 + n, "done") for n in range(120)]
    path = written(place.path, "web-1-aa.jsonl", *events)
    assert gather(place.board).values["dones/min"] == pytest.approx(60, rel=0.1)
    written(place.path, "web-2-bb.jsonl", event(now - 5000, "add"))
    assert gather(place.board).values["dones/min"] == pytest.approx(12, rel=0.1)
    path.rename(path.with_name("web-1-aa.7.jsonl"))  # older ones were removed
    figures = gather(place.board)
    assert figures.values["dones/min"] == pytest.approx(60, rel=0.1)
    assert figures.complete


def test_a_rate_slides_and_does_not_jump_at_the_end_of_a_minute() -> None:
    rates = Rates()
    for second in range(3000):
        rates.note("done", 6000.0 + second)
    found = {rates.per_minute("dones", 8000.0 + step / 10) for step in range(1300)}
    assert max(found) - min(found) <= 0.11


def test_an_alarm_rings_if_the_true_rate_is_unknown(command: Command) -> None:
    sparse(command.path)
    figures = gather(open_directory(command.path))
    assert not figures.complete
    for alarm in ("fails/min>=5", "fails/min>5", "dones/min<1", "dones/min=7", "dones/min<=0"):
        alarms = errors_of(command, "stats", "--fail-if", alarm, code=6)
        assert f"{alarm} may hold: at least 0" in alarms
        assert "rates are lower bounds" in alarms
    for certain in ("dones/min<0", "available>0", "failed=1"):
        assert "holds" not in errors_of(command, "stats", "--fail-if", certain)
    assert "dones/min    ≥ 0" in command("stats")
    assert '"complete": false' in command("--json", "stats")
    assert "dibs_events_complete{" in command("stats", "--prometheus")


def test_an_unreadable_journal_makes_every_rate_a_lower_bound(place: Place) -> None:
    board, port = place.another()
    place.board.add("x")

    def denied(path: str) -> None:
        if path.startswith(".dibs/journal/"):
            raise PermissionError(13, "Permission denied", path)

    assert gather(board).complete
    port.before["read"] = denied
    assert not gather(board).complete


# Invalid files


def test_a_file_as_long_as_a_disk_delays_no_verb(command: Command) -> None:
    board = open_directory(command.path)
    task = board.add("x")
    board.park(task.name, "later", by="ada@desk")
    path = sparse(command.path)
    with path.open("ab") as file:
        file.write(b"\n" + line(event(time.time(), "done", "y")))
    assert "'park'" not in command("show", "x")
    assert "park" in command("log", "x")
    assert "the park of 'x'" in command("undo", code=2)
    assert "done" in command("log", "y")
    assert "1,048,576 MiB: only its newest part is shown" in errors_of(command, "log", "-n", "1")
    assert [f.name for f in board.check() if "MiB" in f.text] == [".dibs/journal/web-9-aa.jsonl"]
    news = News(board.log)
    assert len(news()) == 4
    assert news() == []
    assert len(board.log.recent(0)) == 4


def test_many_files_without_a_line_do_not_delay_the_newest_events(place: Place) -> None:
    task = place.board.add("x")
    place.board.park(task.name, "later", by="ada@desk")
    size, files = 200 << 20, 100
    for n in range(files):
        os.truncate(written(place.path, f"web-{n}-aa.jsonl"), size)
    disk = Counted(str(place.path))
    board = opened(disk)
    figures = gather(board)
    assert not figures.complete
    assert disk.read_bytes < (MOST * files) // 10
    assert board.log.of("x", 10)[0].verb == "add"
    assert next(board.log.newest_first(verbs=("park",))).id == "x"
    assert disk.read_bytes < (MOST * files) // 5


def test_rates_of_too_many_lines_to_count_quickly_are_lower_bounds(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = place.board.snapshot().now.fs / 1e9
    lines = [event(now - n / 100, "done", f"t-{n}") for n in range(50_000, 0, -1)]
    for n in range(5):
        os.utime(written(place.path, f"web-{n}-aa.jsonl", *lines), (now, now))
    place.board.add("short")  # its journal is the shortest, so it is counted
    assert gather(place.board).complete
    size = (place.path / ".dibs/journal/web-0-aa.jsonl").stat().st_size
    monkeypatch.setattr(journal_reader, "_COUNTED", 2 * size)
    disk = Counted(str(place.path))
    figures = gather(opened(disk))
    assert not figures.complete
    assert disk.read_bytes < 3 * size
    rates = opened(disk).log.rates(now - WINDOW)
    assert rates.seconds["adds"].total() == 1
    assert 50_000 <= rates.seconds["dones"].total() < 150_000


@pytest.mark.parametrize("length", [10, 70_000, 300_000, 600_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"torn"])
def test_the_same_lines_are_read_forwards_and_backwards(
    place: Place, length: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line(event(100.0 + n, "done", f"t-{n}" * (1 + n % 7))) for n in range(60)]
    lines[20:20] = [b"z" * length + b"\n", b"\n\n"]
    lines[40:40] = [b"y" * length + b"\n"]
    path = written(place.path, "web-1-aa.jsonl")
    path.write_bytes(b"".join(lines) + end)
    for piece in (100, 4096, 256 << 10):
        monkeypatch.setattr(journal_chain, "PIECE", piece)
        journal = open_directory(place.path).log
        there = list(journal.oldest_first())
        assert [e.at for e in there] == [100.0 + n for n in range(60)]
        assert list(journal.newest_first())[::-1] == there
        assert journal.read() == journal.since()[0] == there


# Only the needed part is read


def test_the_last_events_of_an_id_are_found_at_the_end_of_long_journals(place: Place) -> None:
    for host in range(4):
        events = [event(1e6 + n, "done", f"t-{n}") for n in range(20_000)]
        path = written(place.path, f"web-{host}-aa.jsonl", *events)
        os.utime(path, (1e6 + 20_000, 1e6 + 20_000))
    place.board.add("x")
    disk = Counted(str(place.path))
    journal = BoardFiles(disk, dibs.this_host()).journal
    assert next(journal.newest_first("x")).verb == "add"
    assert disk.read_bytes < 10_000
    assert next(journal.newest_first("t-19999")).at == 1e6 + 19_999
    assert disk.read_bytes < 4 * journal_chain.PIECE + 10_000
    assert next(journal.newest_first("t-10", ("done",))).at == 1e6 + 10


def test_the_complete_history_of_a_young_id_is_found_at_the_end_of_long_journals(
    place: Place,
) -> None:
    now = time.time()
    for host in range(4):
        events = [event(now - 90_000 + 4 * n, "done", f"t-{n}") for n in range(20_000)]
        written(place.path, f"web-{host}-aa.jsonl", *events, event(now - 10, "claim", "x"))
    place.board.add("x")
    place.board.park("x.available", "later")
    disk = Counted(str(place.path))
    history = FilesBoard(BoardFiles(disk, dibs.this_host()), str(place.path)).log.of("x", 100)
    assert [e.verb for e in history] == [*["claim"] * 4, "add", "park"]
    assert disk.read_bytes < 10 * journal_chain.PIECE
    place.board.requeue(place.board.find("x")[0].name)
    claim = place.board.claim("x")
    assert claim is not None
    claim.done()
    place.board.purge(0)
    place.port.sleep(10)
    place.board.forget("x")
    place.board.add("x")
    assert sum(e.verb == "add" for e in place.board.log.of("x", 100)) == 2


def test_the_last_events_of_all_hosts_are_ordered_by_time(place: Place) -> None:
    for host in range(3):
        written(
            place.path,
            f"web-{host}-aa.jsonl",
            *(event(100 + 3 * n + host, "done") for n in range(500)),
        )
    found = [e.at for e in place.board.log.newest_first()]
    assert found == [100.0 + n for n in range(1500)][::-1]
    assert [e.at for e in place.board.log.recent(1000, 20)] == found[:20][::-1]


def test_a_log_shows_the_requested_number_of_last_lines(command: Command) -> None:
    board = open_directory(command.path)
    for name in "abcd":
        board.park(board.add(name).name, "later", by="ada@desk")
    assert [line.split()[1:3] for line in command("log", "-n", "3").splitlines()] == [
        ["park", "c"], ["add", "d"], ["park", "d"],
    ]  # fmt: skip
    assert len(command("--json", "log", "--last", "3").splitlines()) == 3
    assert command("log", "b", "-n", "1").split()[1] == "park"
    assert command("log", "-n", "0") == ""
    assert len(command("log", "-n", "999").splitlines()) == 8


def test_a_lock_with_a_long_history_is_shown_with_its_last_events(command: Command) -> None:
    open_directory(command.path).acquire("gate").release()
    now = time.time()
    events = [event(now + n / 1000, "acquire", "gate") for n in range(3000)]
    written(command.path, "web-1-aa.jsonl", *events)
    done = command.run("show", "gate")
    hint = f"older events are not shown: `dibs -d {command.path} log gate` shows all"
    assert hint.encode() in done.stderr
    history = json.loads(command("--json", "show", "gate"))["history"]
    assert [e["at"] for e in history] == [e.at for e in events[-1000:]]
    lines = command("log", "gate").splitlines()
    assert "release" in "".join(lines[:10])
    assert len(lines) > 3000


def test_a_stream_delays_only_the_events_after_an_intent() -> None:
    chance = random.Random(7)
    verbs = [INTENT, "park", "refused", "done", INTENT, "not-done"]
    for _ in range(200):
        events = [
            Event(float(n), chance.choice(verbs), "x", chance.choice("ab"), "", chance.choice("cd"))
            for n in range(chance.randrange(40))
        ]
        assert list(outcomes(events)) == _answered_in_two_looks(events) == unanswered(events)
    crash = Event(0.0, INTENT, "x", "a", "", "c")
    taken = 0

    def endless() -> object:
        nonlocal taken
        yield crash
        while True:
            taken += 1
            yield Event(float(taken), "done", "y", "b", "", "d")

    assert next(outcomes(endless(), 100)) == crash  # type: ignore[arg-type]
    assert taken < 110


def _answered_in_two_looks(events: list[Event]) -> list[Event]:
    """The same result, computed by looking ahead from each intent."""
    left = []
    for n, one in enumerate(events):
        key = one.src, one.by
        later = (e for e in events[n + 1 :] if (e.src, e.by) == key and e.verb != "refused")
        if one.verb != INTENT or next(later, one).verb == INTENT:
            left.append(one)
    return left


def test_the_log_of_a_long_journal_is_a_stream(command: Command, scratch: Path) -> None:
    small = scratch / "small"
    settle(small)
    for path, count in ((small, 100), (command.path, 60_000)):
        written(path, "web-1-aa.jsonl", *(event(1000 + n, "done", f"t-{n}") for n in range(count)))

    def memory(path: Path, *argv: str) -> int:
        code = (
            "import sys; from dibs.cli import main; main(sys.argv[1:])\n"
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
        )
        line = [sys.executable, "-c", code, "-d", str(path), *argv]
        out = subprocess.DEVNULL
        done = subprocess.run(line, env=command.env, stdout=out, stderr=subprocess.PIPE)
        return int(done.stderr.split()[-1])

    for argv in (["log"], ["--json", "log"], ["log", "t-9"], ["undo"]):
        assert memory(command.path, *argv) < 1.7 * memory(small, *argv), argv


# Many files


class Looks(Counted):
    """A disk that counts the stat calls on journals."""

    looks = 0

    def stat(self, path: str) -> Stat:
        self.looks += path.startswith(".dibs/journal/")
        return super().stat(path)


def test_idle_files_cost_a_follower_little_and_are_read_when_they_grow(
    place: Place,
) -> None:
    for host in range(1500):
        path = written(place.path, f"web-{host}-aa.jsonl", event(1000 + host, "done"))
        os.utime(path, (1000 + host, 1000 + host))
    place.board.add("x")
    disk = Looks(str(place.path))
    journal = BoardFiles(disk, dibs.this_host()).journal
    news = News(journal, journal.end())
    news()
    disk.looks = 0
    place.board.add("y")
    assert [e.id for e in news()] == ["y"]
    assert disk.looks < 50
    with (place.path / ".dibs/journal/web-7-aa.jsonl").open("ab") as file:
        file.write(line(event(time.time(), "done", "awake")))
    heard: list[Event] = []
    until = time.monotonic() + PATIENCE
    while not heard and time.monotonic() < until:
        time.sleep(0.01)
        heard = news()
    assert [e.id for e in heard] == ["awake"]


class Slow(Looks):
    """The same, with a millisecond of a simulated clock for each stat of a journal."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.passed = super().boottime()
        self.looked: Counter[str] = Counter()

    def boottime(self) -> int:
        return self.passed

    def stat(self, path: str) -> Stat:
        if path.startswith(".dibs/journal/"):
            self.passed += 1_000_000
            self.looked[path] += 1
        return super().stat(path)


def test_journals_of_departed_hosts_cost_a_follower_a_tenth_and_are_read_when_they_grow(
    place: Place,
) -> None:
    now = time.time()
    quiet = [written(place.path, f"quiet-{n}.jsonl", event(now, "done")) for n in range(200)]
    gone = [written(place.path, f"gone-{n}.jsonl", event(now, "done")) for n in range(200)]
    for paths, since in ((quiet, 3600), (gone, 14 * 86_400)):
        for path in paths:
            os.utime(path, (now - since, now - since))
    disk = Slow(str(place.path))
    journal = BoardFiles(disk, dibs.this_host()).journal
    news = News(journal, journal.end())

    def looks_at(paths: list[Path]) -> int:
        return sum(disk.looked[f".dibs/journal/{path.name}"] for path in paths)

    for _ in range(2000):
        assert news() == []
        disk.passed += 300_000_000
    assert 0 < looks_at(gone) < looks_at(quiet) / 4
    with gone[7].open("ab") as file:
        file.write(line(event(now, "done", "awake")))
    heard: list[Event] = []
    for _ in range(2000):
        heard += news()
        disk.passed += 300_000_000
    assert [e.id for e in heard] == ["awake"]


def test_a_follower_reads_a_file_that_was_removed_and_recreated(place: Place) -> None:
    place.board.add("first")
    place.board.add("second")
    news = News(place.board.log, place.board.log.end())
    (ours,) = (place.path / ".dibs/journal").iterdir()
    ours.write_bytes(line(event(time.time(), "done", "again")))
    assert [e.id for e in news()] == ["again"]


def test_a_stream_continues_in_a_file_that_is_rotated_while_it_is_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_chain, "PIECE", 500)
    path = written(
        place.path, "web-1-aa.jsonl", *(event(100 + n, "done", f"t-{n}") for n in range(50))
    )
    for stream in (place.board.log.oldest_first(), place.board.log.newest_first()):
        found = [next(stream)]
        path.rename(path.with_name("web-1-aa.1.jsonl"))
        path.write_bytes(b"".join(line(event(900 + n, "add", "later")) for n in range(90)))
        found += stream
        assert sorted(e.at for e in found if e.verb == "done") == [100.0 + n for n in range(50)]
        path.with_name("web-1-aa.1.jsonl").rename(path)
