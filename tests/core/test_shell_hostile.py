"""The shell library against hostile names, records, settings and commands."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from dibs.files.journal_files import LONG
from dibs.model import names
from dibs.model.events import ROTATED, parse
from dibs.model.task import Stamp
from tests.core.library import LIBRARY, SHELLS, Fleet
from tests.core.test_names import mutated
from tests.core.tools import settle


def test_an_available_task_in_the_way_is_not_overwritten(fleet: Fleet) -> None:
    fleet.add("a")
    name = fleet.sh("next_task")
    (fleet.path / "a.f1.available").write_text("another one's")
    fleet.sh("return_task", code=3, DIBS_CLAIM=name)
    assert (fleet.path / "a.f1.available").read_text() == "another one's"
    (fleet.path / "a.f1.available").unlink()
    (fleet.path / "a.f1.available").mkdir()
    fleet.sh("return_task", code=3, DIBS_CLAIM=name)
    assert fleet.names() == ["a.f1.available", f"{name}.claimed"]


@pytest.mark.parametrize("inner", ["", "inner"])
@pytest.mark.parametrize(
    ("verb", "attempts", "end"),
    [
        ("done_task", 5, "done/a.f1.{}"),
        ("fail_task", 5, "a.f1a1.available"),
        ("fail_task", 1, "failed/a.f1a1.{}"),
    ],
)
def test_a_folder_with_the_name_of_a_finished_task_is_refused_at_once(
    fleet: Fleet, verb: str, attempts: int, end: str, inner: str
) -> None:
    settle(fleet.path, max_attempts=attempts)
    fleet.add("a")
    claim = fleet.sh("next_task")
    end = end.format(claim.removeprefix("a.f1."))
    (fleet.path / end / inner).mkdir(parents=True)
    start = time.monotonic()
    done = fleet.run(verb, DIBS_CLAIM=claim)
    assert time.monotonic() - start < 4, "it retried for as long as a disk may take"
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1), done
    assert f"{end} already exists" in done.stderr.decode()
    assert (fleet.path / f"{claim}.claimed").is_file()
    (fleet.path / end).rename(fleet.path.parent / "elsewhere")
    fleet.sh(verb, DIBS_CLAIM=claim)


def test_a_lost_claim_is_lost_even_if_a_folder_has_the_name_of_its_commit(fleet: Fleet) -> None:
    fleet.add("a")
    claim = fleet.sh("next_task")
    (fleet.path / f"{claim}.claimed").rename(fleet.path / "b.available")
    (fleet.path / "done" / claim).mkdir()
    fleet.sh("done_task", code=5, DIBS_CLAIM=claim)


@pytest.mark.parametrize("variable", ["DIBS_BOARD", "DIBS_DIR"])
def test_an_empty_path_of_the_board_is_refused(fleet: Fleet, variable: str) -> None:
    """It does not mean the current directory: usually a variable was misspelt."""
    done = fleet.run("next_task", before=f"unset DIBS_DIR; {variable}=; export {variable}")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done
    assert b"the path of the board is empty" in done.stderr
    assert not (fleet.path.parent / ".dibs").exists()


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        *(("claim_task a", 2), ("next_task", 2), ("reap_stale", 2), ("process_loop true", 2)),
        *((f"{verb} a.f1.me-0123456789", 2) for verb in ("done_task", "fail_task", "return_task")),
        *((f"{verb} a.f1.me-0123456789", 5) for verb in ("heartbeat", "verify_ownership")),
    ],
)
def test_no_function_makes_the_current_directory_a_board(
    fleet: Fleet, verb: str, code: int
) -> None:
    empty = fleet.path.parent / "empty"
    empty.mkdir()
    (empty / "Cargo.lock").touch()
    done = fleet.run(f"unset DIBS_DIR; cd '{empty}'; {verb}")
    assert done.returncode == code, done
    assert os.listdir(empty) == ["Cargo.lock"]
    assert set(done.stderr.splitlines()) == {
        f"dibs: {empty} is not a board: set DIBS_BOARD to its directory, or make one with "
        "`dibs init`".encode()
        if code == 2
        else f"dibs: {empty}/.dibs is missing: move it back; stop".encode()
    }


def test_the_current_directory_is_the_board_if_it_is_one_or_holds_task_files(fleet: Fleet) -> None:
    fleet.add("a")
    here = f"unset DIBS_DIR; cd '{fleet.path}'; "
    shutil.rmtree(fleet.path / ".dibs")
    fleet.sh(f"{here} next_task && done_task")
    assert fleet.names()[0].startswith("done/a.f1.")
    fleet.sh(f"{here} next_task", code=4)
    (fleet.path / "below").mkdir()
    fleet.sh(f"{here} cd below; next_task", code=2)


def test_two_variables_that_name_different_boards_are_refused(fleet: Fleet) -> None:
    fleet.add("a")
    done = fleet.run("next_task", DIBS_BOARD=str(fleet.path.parent))
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done
    assert b"DIBS_BOARD and DIBS_DIR name different boards: unset one" in done.stderr
    assert not (fleet.path.parent / ".dibs").exists()
    fleet.sh("next_task && done_task", DIBS_BOARD=str(fleet.path))
    assert fleet.names()[0].startswith("done/a")


def test_a_lost_reply_is_detected_from_the_names(fleet: Fleet) -> None:
    fleet.add("a", "b")
    fleet.instead_of("mv", '"$REAL" "$@"; echo "mv: Input/output error" >&2; exit 1')
    fleet.sh(
        "claim_task a && return_task && claim_task a && fail_task && claim_task a && done_task"
    )
    assert [n[:11] for n in fleet.names()] == ["b.available", "done/a.f3a1"]


def test_an_old_mv_without_the_options_works_too(fleet: Fleet) -> None:
    """It has no -T, and -n exits with 1 when it skips."""
    fleet.add("a")
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


def test_a_definite_refusal_is_exit_1_and_no_answer_is_uncertain(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.instead_of("mv", 'echo "mv: cannot move: Permission denied" >&2; exit 1')
    fleet.sh("next_task", code=1)
    fleet.instead_of("mv", "exit 0")
    fleet.sh("next_task", code=5, DIBS_TTL="1")
    assert fleet.names() == ["a.available"]


def test_on_a_full_disk_no_task_is_claimed_and_a_claim_continues(fleet: Fleet) -> None:
    """Files can be made and not written, as on a disk without a free block."""
    fleet.add("a", "b")
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
    assert len(finished) == len(HOSTILE)  # ".." is no id, "=41" is one
    assert not list(fleet.path.parent.rglob("pwned"))
    found = board.check()
    assert {f.kind for f in found} == {"stranger", "stuck"}
    stuck = {f"{name}.available" for name in ("dir", "link", "fifo")}
    assert {f.name for f in found if f.kind == "stuck"} == stuck
    assert {e.id for e in board.log.read() if e.verb == "done"} == finished


def test_hostile_records_and_settings_are_data(fleet: Fleet) -> None:
    fleet.add("a")
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
    fleet.add("a", "b")
    fleet.sh("next_task")
    (journal,) = (fleet.path / ".dibs/journal").iterdir()
    os.link(journal, fleet.path.parent / "elsewhere")
    before = journal.read_bytes()
    fleet.sh("next_task")
    assert journal.read_bytes() == before


def test_a_shell_rotates_a_long_journal_and_keeps_three_old_ones(fleet: Fleet) -> None:
    fleet.add(*"abcdef")
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
        event = parse(first.encode())
        assert event is not None
        assert (event.verb, event.src) == (ROTATED, f".dibs/journal/{journal.stem}.{turn}.jsonl")
        assert (f"{journal.stem}.{turn - 3}.jsonl removed" in event.reason) == (turn > 3)
        assert '"claim"' in second
    names = sorted(path.name for path in journal.parent.iterdir())
    assert names == sorted(f"{journal.stem}{n}.jsonl" for n in ("", ".3", ".4", ".5", ".x"))
    assert [e.id for e in fleet.board().log.read() if e.verb == "claim"] == list("cdef")
    assert journal.stat().st_mode == journal.with_name(f"{journal.stem}.5.jsonl").stat().st_mode


def test_the_next_line_repairs_a_torn_journal(fleet: Fleet) -> None:
    fleet.add("a", "b")
    fleet.sh("next_task")
    (journal,) = (fleet.path / ".dibs/journal").iterdir()
    with journal.open("a") as file:
        file.write('{"at": 1, "ver')
    fleet.sh("next_task")
    assert [e.id for e in fleet.board().log.read() if e.verb == "claim"] == ["a", "b"]


def test_a_directory_of_plain_tasks_becomes_a_board_with_its_own_mode(fleet: Fleet) -> None:
    shutil.rmtree(fleet.path)
    fleet.path.mkdir()
    fleet.path.chmod(0o2775)
    fleet.add("a")
    fleet.sh("umask 077; next_task > /dev/null && done_task")
    for path in (fleet.path / ".dibs").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o775 if path.is_dir() else 0o664), path
    assert fleet.board().check() == []


def test_a_beat_in_the_future_keeps_no_claim_permanently(fleet: Fleet) -> None:
    fleet.add("a")
    name = fleet.sh("next_task", DIBS_TTL="1")
    then = time.time() + 1e6
    os.utime(fleet.path / f".dibs/records/{name}", (then, then))
    assert fleet.sh("reap_stale; sleep 2; reap_stale") == ""
    assert fleet.sh("sleep 1.3; reap_stale") == "a.f1a1.available"
    assert fleet.board().log.of("a")[-1].reason == "no heartbeat for 0 s, ttl 1 s"


@pytest.mark.parametrize(("offset", "code"), [("-10", 1), ("+10", 1), ("+0", 0)])
def test_a_wrong_clock_is_refused_if_touch_sets_the_only_time(
    scratch: Path, offset: str, code: int
) -> None:
    """SFTP behaves so: ctime is mtime, a touch has this host's time, a new file the server's."""
    fleet = Fleet(scratch, SHELLS[0])
    fleet.add("a")
    ctime_is_mtime = 'f=$(printf %s "$2" | tr zZ yY); shift 2; set -- -c "$f" "$@"'
    fleet.instead_of("stat", f'[ "$1" != -c ] || {{ {ctime_is_mtime}; }}; exec "$REAL" "$@"')
    fleet.instead_of("touch", f'exec "$REAL" -d "{offset} seconds" "$@"')
    fleet.sh("next_task", code=code)
    assert fleet.names()[0].startswith("a.available" if code else "a.f1.")


def test_looks_at_missing_claims_are_removed_and_invalid_ones_ignored(fleet: Fleet) -> None:
    fleet.add("a")
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
    """How the library parses each name."""
    shell = shutil.which(program[0]) or pytest.skip(f"{program[0]} is not installed")
    script = f""". '{LIBRARY}'
    LC_ALL=C
    while IFS= read -r n; do
      dibs_read "$n" || state=stranger eid= fence= attempts= prio= claim= asked= due=
      printf "%s\\n" "$state $eid $fence $attempts $prio $claim $asked $due"
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
        return "stranger       "
    spelled = names.spell_stamp(Stamp(0, 0, 5, task.question, task.answer)).removeprefix("f0")
    counters = " ".join(map(str, task.stamp[:3]))
    return (
        f"{task.state} {names.escape(task.id)} {counters} {task.claim} {spelled} "
        f"{task.not_before or ''}"
    )


@pytest.mark.parametrize("program", SHELLS, ids=" ".join)
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(listed=st.lists(mutated(), min_size=5, max_size=30))
@example(listed=["t1.claimed-by-ci.claimed-boxes.example", "t.claimed-by-web.free.fr"])
@example(listed=["x.claimed-by-web.lock", "x.claimed-by-web.available", "x.claimed-by-lock"])
@example(listed=["t.f1a2q1r3n7.later", "t.f1.later", "t.later", "t.f1n7.available", "t.f0n7.later"])
@example(listed=["t.f2q1r3.available", "t.f2q1.w-0123456789.asked", "t.f2n7.w-0123456789.claimed"])
@example(listed=["t.claimed-by-free", "t.claimed-by-a.free", "t.claimed-by-a.claimed-by-b.c"])
def test_a_shell_parses_every_name_as_dibs_does(program: list[str], listed: list[str]) -> None:
    """Names with a NUL or a newline are left out: a shell cannot read them as lines."""
    listed = [n for n in listed if n and not set("\0\n/") & set(n) and "=00" not in n]
    assert read_by_shell(program, listed) == [read_by_dibs(name) for name in listed]


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u2066", "\u061c", "\u200b", "\x9b31m", "\u2028", "\ufeff", "\U000e0041"]
)
def test_a_message_shows_no_character_that_a_terminal_obeys_or_hides(
    fleet: Fleet, hidden: str
) -> None:
    name = f"a{hidden}é猫"
    (fleet.path / f"{name}.available").mkdir()
    done = fleet.run(f"claim_task '{name}'")
    assert done.returncode == 1
    shown = done.stderr.decode()
    assert shown.rstrip("\n").isprintable()
    assert "é猫.available: it is a folder" in shown


def test_a_host_without_proc_uptime_is_refused_in_one_line(fleet: Fleet) -> None:
    fleet.add("a")
    hide = "mount -t proc -o subset=pid proc /proc"
    if subprocess.run(["unshare", "-m", "sh", "-c", hide], capture_output=True).returncode:
        pytest.skip("A HIDDEN /proc/uptime WAS NOT TRIED: it takes root and a kernel that hides it")
    shell = [shutil.which(fleet.program[0]) or "", *fleet.program[1:]]
    fleet.program = [
        "unshare",
        "-m",
        "/bin/sh",
        "-c",
        f'PATH={os.environ["PATH"]} {hide} && exec "$@"',
        "-",
        *shell,
    ]
    done = fleet.run("next_task")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done
    assert b"/proc/uptime" in done.stderr
    assert b"use the dibs command" in done.stderr
