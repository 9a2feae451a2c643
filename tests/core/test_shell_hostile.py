"""The shell library against hostile names, records, settings and commands."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from dibs import names
from dibs.journal import LONG, ROTATED, parse
from tests.core.library import LIBRARY, SHELLS, Fleet
from tests.core.test_names import mutated


def test_what_waits_in_the_way_is_not_overwritten(fleet: Fleet) -> None:
    fleet.offer("a")
    name = fleet.sh("next_task")
    (fleet.path / "a.f1.available").write_text("another one's")
    fleet.sh("return_task", code=3, DIBS_CLAIM=name)
    assert (fleet.path / "a.f1.available").read_text() == "another one's"
    (fleet.path / "a.f1.available").unlink()
    (fleet.path / "a.f1.available").mkdir()
    fleet.sh("return_task", code=3, DIBS_CLAIM=name)
    assert fleet.names() == ["a.f1.available", f"{name}.claimed"]


def test_a_lost_reply_is_found_out_by_looking_at_the_names(fleet: Fleet) -> None:
    fleet.offer("a", "b")
    fleet.instead_of("mv", '"$REAL" "$@"; echo "mv: Input/output error" >&2; exit 1')
    fleet.sh(
        "claim_task a && return_task && claim_task a && fail_task && claim_task a && done_task"
    )
    assert [n[:11] for n in fleet.names()] == ["b.available", "done/a.f3a1"]


def test_an_old_mv_without_options_for_it_does_as_well(fleet: Fleet) -> None:
    """No -T, and -n exits with 1 when it skips."""
    fleet.offer("a")
    script = 'case $1 in -T | --help) echo "mv: bad option" >&2; exit 1 ;; esac\n'
    fleet.instead_of(
        "mv", script + 'case $1 in -n) [ ! -e "$3" ] || exit 1 ;; esac\nexec "$REAL" "$@"'
    )
    name = fleet.sh("next_task && return_task && next_task").split()[-1]
    assert name.startswith("a.f2.")
    for make in (Path.mkdir, Path.touch):
        way = fleet.path / "a.f2.available"
        make(way)
        fleet.sh("return_task", code=3, DIBS_CLAIM=name)
        way.rename(fleet.path / make.__name__)
    fleet.sh("done_task", DIBS_CLAIM=name)


def test_a_definite_refusal_is_exit_1_and_silence_is_uncertain(fleet: Fleet) -> None:
    fleet.offer("a")
    fleet.instead_of("mv", 'echo "mv: cannot move: Permission denied" >&2; exit 1')
    fleet.sh("next_task", code=1)
    fleet.instead_of("mv", "exit 0")
    fleet.sh("next_task", code=5, DIBS_TTL="1")
    assert fleet.names() == ["a.available"]


def test_on_a_full_disk_a_task_is_not_taken_and_a_claim_goes_on(fleet: Fleet) -> None:
    """Files can be made there, as on a disk without a free block, and nothing be written."""
    fleet.offer("a", "b")
    full = "trap '' XFSZ; ulimit -f 0"
    fleet.sh(f"next_task; {full}; heartbeat && verify_ownership && done_task")
    fleet.sh(f"{full}; next_task", code=1)
    assert [n.partition("-")[0] for n in fleet.names()] == ["b.f1.available", "done/a.f1.me"]
    assert os.listdir(fleet.path / ".dibs/records") == []


HOSTILE = [
    "$(touch pwned)", "`touch pwned`", "a b", "*", "?", "[a]", "-rf", "--help", "x;touch pwned",
    "new\nline", "tab\there", "quote'", 'double"', "back\\slash", "%s%n", "é", "..", "~", "!x", "&",
    "a=b", "a=2", "a=ZZ", "a=41", "#x", "x.f01", "x.f1p5", "\udcff\udcfe", "c" * 120,
]  # fmt: skip


def test_hostile_names_are_data(fleet: Fleet) -> None:
    for text in HOSTILE:
        with open(os.fsencode(f"{fleet.path}/{text}.available"), "wb") as file:
            file.write(b"payload")
    strange = ["d" * 200 + ".available", "x.available.available", ".available", ".hidden.available"]
    strange += [
        "available",
        "nul=00l.available",
        "y.claimed.available",
        "\n.f1.me-0123456789.held",
        "=41.available",
    ]
    for text in strange:
        (fleet.path / text).touch()
    listed = [t for t in map(names.read, os.listdir(fleet.path)) if t is not None]
    (fleet.path / "dir.available").mkdir()
    (fleet.path / "link.available").symlink_to("/etc/passwd")
    os.mkfifo(fleet.path / "fifo.available")
    done = fleet.run("process_loop true; reap_stale")
    assert done.returncode == 0, done
    assert done.stderr == b""
    board = fleet.board()
    finished = {t.id for t in board.snapshot().tasks.values() if t.state == "done"}
    assert finished == {t.id for t in listed if t.state == "available" and "\0" not in t.id}
    assert len(finished) == len(HOSTILE)  # ".." is nobody's, "=41" is somebody's
    assert not list(fleet.path.parent.rglob("pwned"))
    found = board.check()
    assert {f.kind for f in found} == {"stranger", "stuck"}
    stuck = {f"{name}.available" for name in ("dir", "link", "fifo")}
    assert {f.name for f in found if f.kind == "stuck"} == stuck
    assert {e.id for e in board.journal.read() if e.verb == "done"} == finished


def test_hostile_records_and_settings_are_data(fleet: Fleet) -> None:
    fleet.offer("a")
    name = fleet.sh("next_task", DIBS_TTL="60")
    record = fleet.path / f".dibs/records/{name}"
    for data in (b"", b"{" * 9000, b"\0\xff", b'{"ttl": $(touch pwned)}', b'{"ttl": 1e9}', b"\n!"):
        record.write_bytes(data)
        fleet.sh("reap_stale; heartbeat", DIBS_CLAIM=name)
    record.unlink()
    record.symlink_to("/etc/passwd")
    before = os.stat("/etc/passwd").st_mtime_ns
    fleet.run("reap_stale; heartbeat", DIBS_CLAIM=name)
    assert os.stat("/etc/passwd").st_mtime_ns == before
    for path in (fleet.path / ".dibs/witness").iterdir():
        path.write_bytes(b"x $(touch pwned) \xff\n" * 50)
    (fleet.path / ".dibs/board.toml").write_text("ttl = $(touch pwned)\n")
    fleet.sh("reap_stale", code=1)
    assert not list(fleet.path.parent.rglob("pwned"))


def test_a_journal_with_a_second_name_is_not_written(fleet: Fleet) -> None:
    fleet.offer("a", "b")
    fleet.sh("next_task")
    (journal,) = (fleet.path / ".dibs/journal").iterdir()
    os.link(journal, fleet.path.parent / "elsewhere")
    before = journal.read_bytes()
    fleet.sh("next_task")
    assert journal.read_bytes() == before


def test_a_long_journal_is_set_aside_by_a_shell_and_all_but_three_of_those_go(fleet: Fleet) -> None:
    fleet.offer(*"abcdef")
    fleet.sh("next_task")
    (journal,) = (fleet.path / ".dibs/journal").iterdir()
    (journal.with_name(f"{journal.stem}.x.jsonl")).write_text("a stranger's")
    for turn in range(1, 6):
        with journal.open("r+") as file:
            file.truncate(LONG)
            file.seek(LONG - 1)
            file.write("\n")
        fleet.sh("next_task")
        first, second = journal.read_text().splitlines()
        assert journal.with_name(f"{journal.stem}.{turn}.jsonl").stat().st_size == LONG
        told = parse(first.encode())
        assert told is not None
        assert (told.verb, told.src) == (ROTATED, f".dibs/journal/{journal.stem}.{turn}.jsonl")
        assert (f"{journal.stem}.{turn - 3}.jsonl removed" in told.reason) == (turn > 3)
        assert '"claim"' in second
    names = sorted(path.name for path in journal.parent.iterdir())
    assert names == sorted(f"{journal.stem}{n}.jsonl" for n in ("", ".3", ".4", ".5", ".x"))
    assert [e.id for e in fleet.board().journal.read() if e.verb == "claim"] == list("cdef")
    assert journal.stat().st_mode == journal.with_name(f"{journal.stem}.5.jsonl").stat().st_mode


def test_a_torn_journal_is_mended_by_the_next_line(fleet: Fleet) -> None:
    fleet.offer("a", "b")
    fleet.sh("next_task")
    (journal,) = (fleet.path / ".dibs/journal").iterdir()
    with journal.open("a") as file:
        file.write('{"at": 1, "ver')
    fleet.sh("next_task")
    assert [e.id for e in fleet.board().journal.read() if e.verb == "claim"] == ["a", "b"]


def test_a_board_of_nothing_but_tasks_is_made_ready_with_its_own_mode(fleet: Fleet) -> None:
    shutil.rmtree(fleet.path)
    fleet.path.mkdir()
    fleet.path.chmod(0o2775)
    fleet.offer("a")
    fleet.sh("umask 077; next_task > /dev/null && done_task")
    for path in (fleet.path / ".dibs").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o775 if path.is_dir() else 0o664), path
    assert fleet.board().check() == []


def test_a_beat_in_the_future_keeps_nobodys_claim_for_ever(fleet: Fleet) -> None:
    fleet.offer("a")
    name = fleet.sh("next_task", DIBS_TTL="1")
    then = time.time() + 1e6
    os.utime(fleet.path / f".dibs/records/{name}", (then, then))
    assert fleet.sh("reap_stale; sleep 2; reap_stale") == ""
    assert fleet.sh("sleep 1.3; reap_stale") == "a.f1a1.available"
    assert fleet.board().history("a")[-1].reason == "silent for 0 s, ttl 1 s"


@pytest.mark.parametrize(("offset", "code"), [("-10", 1), ("+10", 1), ("+0", 0)])
def test_a_wrong_clock_is_refused_where_touch_sets_the_only_time(
    scratch: Path, offset: str, code: int
) -> None:
    """As over SFTP: ctime is mtime, a touch has this host's time, a new file the server's."""
    fleet = Fleet(scratch, SHELLS[0])
    fleet.offer("a")
    ctime_is_mtime = 'f=$(printf %s "$2" | tr zZ yY); shift 2; set -- -c "$f" "$@"'
    fleet.instead_of("stat", f'[ "$1" != -c ] || {{ {ctime_is_mtime}; }}; exec "$REAL" "$@"')
    fleet.instead_of("touch", f'exec "$REAL" -d "{offset} seconds" "$@"')
    fleet.sh("next_task", code=code)
    assert fleet.names()[0].startswith("a.available" if code else "a.f1.")


def test_looks_at_claims_that_are_gone_are_removed_and_foul_ones_passed_over(fleet: Fleet) -> None:
    fleet.offer("a")
    name = fleet.sh("next_task", DIBS_TTL="1")
    folder = fleet.path / ".dibs/looks"
    for number in range(300):
        (folder / f"b{number}.f1.me-0123456789").write_text("x\n")
    (folder / "b.f1.me-0123456789").symlink_to("/etc/passwd")
    (folder / "notes").write_text("mine")
    (folder / name).write_bytes(b"a 1 2 3\n$(touch pwned) 1 2 3\n\xff 1 2 3\n" + b"9 " * 9000)
    fleet.sh("sleep 1.1; reap_stale")
    assert sorted(path.name for path in folder.iterdir()) == sorted([name, "notes"])
    assert not list(fleet.path.parent.rglob("pwned"))
    assert fleet.sh("sleep 1; reap_stale") == "a.f1a1.available"


def read_by_shell(program: list[str], listed: list[str]) -> list[str]:
    """What the library makes of each name."""
    shell = shutil.which(program[0]) or pytest.skip(f"{program[0]} is not installed")
    script = f""". '{LIBRARY}'
    LC_ALL=C
    while IFS= read -r n; do
      dibs_read "$n" && printf '%s\\n' "$state $eid $fence $attempts $prio $claim" || echo stranger
    done"""
    lines = "".join(f"{name}\n" for name in listed)
    done = subprocess.run(
        [shell, *program[1:], "-c", script],
        input=os.fsencode(lines),
        capture_output=True,
        check=True,
    )
    return os.fsdecode(done.stdout).split("\n")[:-1]


def read_by_dibs(name: str) -> str:
    task = names.read(name)
    if task is None:
        return "stranger"
    return f"{task.state} {names.escape(task.id)} {' '.join(map(str, task.stamp))} {task.claim}"


@pytest.mark.parametrize("program", SHELLS, ids=" ".join)
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(listed=st.lists(mutated(), min_size=5, max_size=30))
@example(listed=["t1.claimed-by-ci.claimed-boxes.example", "t.claimed-by-web.free.fr"])
@example(listed=["x.claimed-by-web.lock", "x.claimed-by-web.available", "x.claimed-by-lock"])
@example(listed=["t.claimed-by-free", "t.claimed-by-a.free", "t.claimed-by-a.claimed-by-b.c"])
def test_a_shell_reads_every_name_as_dibs_does(program: list[str], listed: list[str]) -> None:
    """A NUL cannot be in a shell's variable, nor a line's end in a line."""
    listed = [n for n in listed if n and not set("\0\n/") & set(n) and "=00" not in n]
    assert read_by_shell(program, listed) == [read_by_dibs(name) for name in listed]
