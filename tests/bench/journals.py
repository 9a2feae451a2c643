"""The cost of reading verbs with long or many journals, or with many ids."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dibs
from dibs.files.journal import KEPT, line_of
from dibs.files.journal_files import LONG
from tests.bench.harness import Contender, Limit, Row, compare, interleave
from tests.bench.places import Setup, add_tasks, scratch

TITLE = "Journals"

_MEMORY = (
    "import sys; from dibs.cli import main; main(sys.argv[1:])\n"
    "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
)
_HOSTS = 10_000
_IDS = 100_000


class Command:
    """One verb, in a separate process."""

    def __init__(self, board: Path, *argv: str) -> None:
        self.argv = ["-d", str(board), *argv]
        self.env = os.environ | {"PYTHONPATH": str(Path(dibs.__file__).parents[1])}

    def fill(self, count: int) -> None:
        pass

    def run(self, count: int) -> None:
        for _ in range(count):
            self._run("-m", "dibs")

    def memory(self) -> float:
        """Its peak memory, in MiB."""
        return int(self._run("-c", _MEMORY).stderr.split()[-1]) / 1024

    def _run(self, *how: str) -> subprocess.CompletedProcess[bytes]:
        line = [sys.executable, *how, *self.argv]
        pipe = subprocess.PIPE
        return subprocess.run(line, env=self.env, stdout=subprocess.DEVNULL, stderr=pipe)


def run(setup: Setup) -> Iterator[Row]:
    rounds = setup.amount(7, 3)
    with scratch(setup.ram) as where:
        small, long, wide = (_board(where / name) for name in ("small", "long", "wide"))
        files = setup.amount(KEPT + 1, 1)
        _fill(long, files)
        add_tasks(wide, 0, _IDS)
        yield from _long(small, long, files, rounds)
        yield from _wide(small, wide, rounds)
        yield _idle(_board(where / "many"), setup.amount(15, 5))


def _long(small: Path, long: Path, files: int, rounds: int) -> Iterator[Row]:
    size = f"{files * (LONG >> 20)} MiB of journal"
    verbs: dict[str, tuple[tuple[str, ...], Limit | None]] = {
        "log --last 20": (("log", "--last", "20"), Limit("at most", 2)),
        "undo ID": (("undo", "x"), Limit("at most", 2)),
        "show ID, with all of its history": (("show", "x"), Limit("at most", 2)),
        "log ID, of an old one": (("log", "t-7"), Limit("at most", 8)),
        "undo, where no act was ever made": (("undo",), None),
        "stats": (("stats",), None),
    }
    for what, (argv, limit) in verbs.items():
        pair: dict[str, Contender] = {"a": Command(long, *argv), "b": Command(small, *argv)}
        times = interleave(pair, rounds, 1)
        note = "rates: every event of ten minutes is counted" if argv == ("stats",) else ""
        against = "the same with a few lines"
        yield compare(f"`{what}` with {size}", times["a"], against, times["b"], limit, note=note)
    start = time.perf_counter()
    most, least = Command(long, "log").memory(), Command(small, "log").memory()
    note = f"{time.perf_counter() - start:.1f} s for both"
    yield compare(
        f"memory of `log` of all of {size}", [most], "of a few lines", [least],
        Limit("at most", 2), "MiB", note,
    )  # fmt: skip


def _wide(small: Path, wide: Path, rounds: int) -> Iterator[Row]:
    for argv in (("show", "x"), ("log", "--last", "20"), ("check", "--probe")):
        pair: dict[str, Contender] = {"a": Command(wide, *argv), "b": Command(small, *argv)}
        times = interleave(pair, rounds, 1)
        what = f"`{' '.join(argv)}` on a board of {_IDS:,} ids"
        yield compare(what, times["a"], "of one id", times["b"], Limit("at most", 3))


def _idle(board: Path, seconds: int) -> Row:
    """The cost of `log -f` on an idle board, as a share of a processor."""
    folder = board / ".dibs/journal"
    for host in range(_HOSTS):
        path = folder / f"host-{host:05}-fe00.jsonl"
        path.write_bytes(line_of(1000.0 + host, "done", f"t-{host}", "", "", "worker", ""))
        os.utime(path, (1000 + host, 1000 + host))
    command = Command(board, "log", "-n", "1", "-f")
    line = [sys.executable, "-m", "dibs", *command.argv]
    with subprocess.Popen(line, env=command.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        before = _spent(process.pid)
        time.sleep(seconds)
        share = (_spent(process.pid) - before) / seconds
        process.kill()
    what = f"an idle `log -f` on {_HOSTS:,} journals of hosts that are gone"
    return Row(what, 100 * share, "% of a core", limit=Limit("at most", 8, "measured"))


def _spent(pid: int) -> float:
    """The processor seconds that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _board(path: Path) -> Path:
    """A board with one task, the last one added."""
    dibs.open(path, create=True).add("x")
    return path


def _fill(board: Path, files: int) -> None:
    """Add this many long journals that end before the existing line, with 4,000 tasks a minute."""
    (path,) = (board / ".dibs/journal").iterdir()
    last = path.read_bytes()
    now = time.time()
    number = 0
    for n in range(1, files + 1):  # the newest file first
        lines: list[bytes] = []
        size = 0
        while size < LONG - (200_000 if n == 1 else 0):
            ident, claim = f"t-{number}", f"t-{number}.f1.worker-0123456789"
            at = round(now - number * 60 / 4000, 3)
            for verb, src, dst in (
                ("done", f"{claim}.claimed", f"done/{claim}"),
                ("claim", f"{ident}.available", f"{claim}.claimed"),
                ("add", "", f"{ident}.available"),
            ):
                lines.append(line_of(at, verb, ident, src, dst, "worker-7@web-3", ""))
                size += len(lines[-1])
            number += 1
        text = b"".join(reversed(lines))
        if n == 1:
            path.write_bytes(text + last)
        else:
            path.with_name(f"{path.stem}.{files - n + 1}.jsonl").write_bytes(text)
