"""The shell library: each function, its exit code, and what Python sees of it."""

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

import dibs
from dibs.model.hooks import Hook
from dibs.model.records import decode
from dibs.model.settings import Settings, dump
from tests.core.library import CLAIM, LIBRARY, SHELLS, Fleet
from tests.core.tools import settle
from tests.stress.running import until


def old(path: Path, seconds: float) -> None:
    """Make the mtime of a file this old."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_worker_goes_from_claim_to_done_and_python_sees_each_step(fleet: Fleet) -> None:
    fleet.add("task-7")
    words = 'model "x"\t\\ü'
    name = fleet.sh("next_task", DIBS_META=words, DIBS_TTL="30.5", DIBS_OWNER="web 3 é")
    assert re.fullmatch(CLAIM, name)
    board = fleet.board()
    (holder,) = board.snapshot().holders.values()
    record = decode((fleet.path / f".dibs/records/{name}").read_bytes())
    assert (holder.owner, holder.ttl, holder.metadata) == ("web 3 é", 30.5, words)
    assert (record.owner, record.ttl, record.metadata) == ("web 3 é", 30.5, words)
    assert (record.flaw, record.host) == ("", board.host.name)
    assert abs(record.claimed_at - time.time()) < 60
    assert holder.task.fence == 1
    fleet.sh("heartbeat && verify_ownership && done_task", DIBS_CLAIM=name)
    assert fleet.names() == [f"done/{name}"]
    assert [(e.verb, e.src, e.dst) for e in board.log.of("task-7")] == [
        ("claim", "task-7.available", f"{name}.claimed"),
        ("done", f"{name}.claimed", f"done/{name}"),
    ]
    assert (fleet.path / f"done/{name}").read_text() == "payload of task-7\n"
    assert board.check() == []
    assert board.log.torn() == []
    assert len(board.log.files()) == 1


def test_a_claim_exports_what_a_handler_needs(fleet: Fleet) -> None:
    fleet.add("v1.2 x")
    shown = fleet.sh('next_task > /dev/null; cat "$DIBS_PAYLOAD"; echo "$DIBS_ID,$DIBS_FENCE"')
    assert shown == "payload of v1.2 x\nv1.2 x,1"
    (task,) = fleet.board().find("v1.2 x")
    assert task.name.startswith("v1=2E2=20x.f1.me-")
    assert fleet.board().check() == []


def test_it_works_under_errexit_and_nounset(fleet: Fleet) -> None:
    fleet.add("a", "b")
    script = "set -eu; next_task; heartbeat; verify_ownership; done_task; process_loop true"
    fleet.sh(script)
    assert [n[:6] for n in fleet.names()] == ["done/a", "done/b"]
    fleet.sh("set -eu; next_task; echo not reached", code=4)


def test_priority_comes_first_then_the_name(fleet: Fleet) -> None:
    fleet.add("c", "b.f0p9", "a", "d.f3p1", "e.f2a1p9")
    taken = fleet.sh("for _ in 1 2 3 4 5; do next_task; done").split()
    assert [name.partition(".")[0] for name in taken] == ["b", "e", "a", "c", "d"]
    assert [n.split(".")[1] for n in taken] == ["f1p9", "f3a1p9", "f1", "f1", "f4p1"]
    fleet.sh("next_task", code=4)


def test_a_name_without_a_fence_gets_an_entry(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.sh("next_task")
    assert (fleet.path / ".dibs/known/a.0").read_bytes() == b""
    with pytest.raises(dibs.Exists):
        fleet.board().add("a")


def test_two_names_of_one_id_are_never_claimed(fleet: Fleet) -> None:
    fleet.add("a", "a.f3")
    fleet.sh("next_task", code=4)
    fleet.sh("claim_task a", code=3)
    assert fleet.names() == ["a.available", "a.f3.available"]


def test_the_dotted_name_of_a_shell_and_the_escaped_one_are_one_id(fleet: Fleet) -> None:
    fleet.add("v1.2", "v1=2E2.f1")
    fleet.sh("next_task", code=4)
    fleet.add("v1.3")
    assert fleet.sh("claim_task v1.3").startswith("v1=2E3.f1.me-")


def test_a_requeued_task_keeps_its_stamp_and_its_counts(fleet: Fleet) -> None:
    fleet.add("a.f4a1p9")
    fleet.sh("next_task && return_task")
    assert fleet.names() == ["a.f5a1p9.available"]
    fleet.sh('next_task && fail_task "" "no luck"')
    assert fleet.names() == ["a.f6a2p9.available"]
    event = fleet.board().log.of("a")[-1]
    assert (event.verb, event.reason, event.by) == ("fail", "no luck", "me")


def test_a_task_that_fails_too_often_is_parked(scratch: Path) -> None:
    fleet = Fleet(scratch, SHELLS[0], max_attempts=2)
    fleet.add("a")
    fleet.sh("next_task && fail_task && next_task && fail_task")
    (name,) = fleet.names()
    assert re.fullmatch(r"failed/a\.f2a2\.me-[0-9A-F]{10}", name)


def test_release_means_finished_as_in_the_fleets_that_rm_their_claims(fleet: Fleet) -> None:
    fleet.add("a")
    script = "claim_task a && heartbeat a && verify_ownership a && release_task a"
    fleet.sh(script)
    assert fleet.names()[0].startswith("done/a.f1.")


def test_a_repeated_commit_still_counts(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.sh("next_task && done_task && done_task")
    fleet.sh("fail_task", code=5, DIBS_CLAIM=fleet.names()[0].removeprefix("done/"))


def test_a_repeated_commit_is_journalled_once(fleet: Fleet) -> None:
    fleet.add("a", "b")
    fleet.sh("next_task && done_task && done_task")
    fleet.board().attach(fleet.names()[-1].removeprefix("done/")).done()
    claim = fleet.board().claim()
    assert claim is not None
    claim.done()
    fleet.sh("done_task", DIBS_CLAIM=claim.name)
    board = fleet.board()
    for ident in ("a", "b"):
        assert [event.verb for event in board.log.of(ident)].count("done") == 1


@pytest.mark.parametrize(
    "verb", ["heartbeat", "verify_ownership", "done_task", "release_task", "return_task"]
)
def test_a_lost_claim_has_the_exit_code_that_means_stop(fleet: Fleet, verb: str) -> None:
    fleet.add("a")
    name = fleet.sh("next_task")
    fleet.board().force_release(f"{name}.claimed", "test")
    fleet.sh(verb, code=5, DIBS_CLAIM=name)
    assert fleet.names() == ["a.f1.available"]
    assert not (fleet.path / f".dibs/records/{name}").exists()


def test_bad_input_is_exit_2(fleet: Fleet) -> None:
    fleet.add("a")
    for script in ("heartbeat", "heartbeat a", "done_task a", "claim_task", "claim_task ''"):
        fleet.sh(script, code=2)
    fleet.sh(f"claim_task {'x' * 121}", code=2)
    for ttl in ("0", "x", "1e3", "86401", "1.2.3"):
        fleet.sh("next_task", code=2, DIBS_TTL=ttl)
    fleet.sh("next_task", code=2, DIBS_OWNER="a\nb")
    fleet.sh("next_task", code=2, DIBS_OWNER="é" * 257)
    fleet.sh("next_task", code=2, DIBS_META="é" * 1025)
    fleet.sh("process_loop", code=2)
    fleet.board().acquire("door")
    fleet.sh("claim_task door", code=2)
    assert "a.available" in fleet.names()


def test_storage_is_exit_1(fleet: Fleet) -> None:
    fleet.sh("next_task", code=1, DIBS_DIR=str(fleet.path / "nowhere"))
    (fleet.path / ".dibs/board.toml").write_text("format = 3\n")
    fleet.sh("next_task", code=1)
    (fleet.path / ".dibs/board.toml").write_text("ttl = 30 # half\n\n# words\nreap_dead=true\n")
    fleet.sh("next_task", code=4)
    os.rename(fleet.path / "done", fleet.path / "elsewhere")
    (fleet.path / "done").symlink_to("elsewhere")
    fleet.sh("next_task", code=1)


def test_the_hooks_of_a_board_do_not_keep_a_shell_from_working(fleet: Fleet) -> None:
    hooks = (
        Hook("ci", "https://ci.example.com/a=b%23", ("add",), retry=(1.0,)),
        Hook("chat", "https://chat.example.com", ("failed", "ask"), ("a*", "b")),
    )
    (fleet.path / ".dibs/board.toml").write_bytes(dump(Settings(ttl=77, hooks=hooks)))
    fleet.add("a")
    fleet.sh("next_task")
    (held,) = fleet.board().entries(states={"claimed"})
    assert held.ttl == 77
    fleet.sh("next_task", code=4)


def test_an_unknown_id_is_refused_and_a_held_one_is_exit_4(fleet: Fleet) -> None:
    fleet.sh("claim_task a", code=3)
    fleet.board().add("a")
    fleet.board().claim("a", owner="you")
    fleet.sh("claim_task a", code=4)
    (fleet.path / "b.claimed").touch()
    fleet.sh("claim_task b", code=4)


def test_an_agent_without_memory_resumes_its_claim_only_by_name(fleet: Fleet) -> None:
    fleet.add("a")
    name = fleet.sh("claim_task a")
    record = fleet.path / f".dibs/records/{name}"
    old(record, 70)
    assert fleet.sh("claim_task a", DIBS_CLAIM=name) == name
    assert record.stat().st_mtime > time.time() - 60  # so it beat
    fleet.sh("claim_task a", code=4)  # the owner text proves nothing
    fleet.sh("claim_task --resume a", code=4)
    again = fleet.sh("claim_task --resume a", DIBS_CLAIM=name)
    assert re.fullmatch(r"a\.f2\.me-[0-9A-F]{10}", again)
    fleet.sh("heartbeat", code=5, DIBS_CLAIM=name)
    assert os.listdir(fleet.path / ".dibs/records") == [again]
    assert fleet.board().check() == []


def test_a_shell_continues_a_claim_of_python(fleet: Fleet) -> None:
    board = fleet.board()
    board.add("a", b"x", priority=7)
    claim = board.claim(owner="py", ttl=60)
    assert claim is not None
    before = (fleet.path / f".dibs/records/{claim.name}").stat().st_mtime_ns
    fleet.sh("sleep 0.05; heartbeat", DIBS_CLAIM=claim.name)
    assert (fleet.path / f".dibs/records/{claim.name}").stat().st_mtime_ns > before
    claim.beat()
    fleet.sh("done_task", DIBS_CLAIM=claim.name)
    assert claim.done().state == "done"
    assert len(board.log.files()) == 1  # one file per host, boot and device


def test_a_beat_that_finds_no_record_writes_one_and_never_makes_a_claim(fleet: Fleet) -> None:
    fleet.add("a")
    name = fleet.sh("next_task")
    record = fleet.path / f".dibs/records/{name}"
    record.unlink()
    fleet.sh("heartbeat", DIBS_CLAIM=name)
    assert decode(record.read_bytes()).owner == "me"
    record.unlink()
    os.rename(fleet.path / f"{name}.claimed", fleet.path / "a.f1.available")
    fleet.sh("heartbeat", code=5, DIBS_CLAIM=name)
    assert os.listdir(fleet.path / ".dibs/records") == []


def test_a_worker_stops_at_the_end_of_its_lease_whatever_the_disk_says(scratch: Path) -> None:
    fleet = Fleet(scratch, SHELLS[0])
    fleet.add("a", "b")
    late = "next_task > /dev/null; sleep 1.1"
    fleet.sh(f"{late}; verify_ownership", code=5, DIBS_TTL="1")
    fleet.sh(f"{late}; heartbeat", code=5, DIBS_TTL="1")
    assert all(n.endswith(".claimed") for n in fleet.names())


def test_work_that_is_finished_three_ttls_late_is_committed_if_no_one_took_it(
    scratch: Path,
) -> None:
    fleet = Fleet(scratch, SHELLS[0])
    fleet.add("a", "b")
    alone, taken = (fleet.sh("next_task", DIBS_TTL="1") for _ in range(2))
    os.rename(fleet.path / f"{taken}.claimed", fleet.path / "b.f1a1.available")
    fleet.sh("sleep 3.1; verify_ownership", code=5, DIBS_CLAIM=alone)
    fleet.sh("done_task", DIBS_CLAIM=alone)
    fleet.sh("done_task", code=5, DIBS_CLAIM=taken)
    assert fleet.names() == ["b.f1a1.available", f"done/{alone}"]


def test_a_background_beat_keeps_a_worker_alive(fleet: Fleet) -> None:
    fleet.add("a")
    beats = "(for _ in 1 2 3 4 5 6 7 8; do sleep 0.4; heartbeat; done) &"
    script = f"next_task; {beats} sleep 3.2; verify_ownership; x=$?; wait; exit $x"
    fleet.sh(script, DIBS_TTL="3")


def test_a_stale_claim_is_requeued_after_two_looks(fleet: Fleet) -> None:
    fleet.add("a")
    name = fleet.sh("next_task", DIBS_TTL="1")
    assert fleet.sh("sleep 1.2; reap_stale") == ""
    assert fleet.sh("reap_stale") == ""
    assert fleet.sh("sleep 0.9; reap_stale") == "a.f1a1.available"
    assert fleet.sh("reap_stale") == ""
    event = fleet.board().log.of("a")[-1]
    assert (event.verb, event.src) == ("reap", f"{name}.claimed")
    assert event.by == f"tester@{os.uname().nodename}"
    assert fleet.board().check() == []


def test_a_claim_that_beats_is_never_requeued(fleet: Fleet) -> None:
    fleet.add("a")
    beats = "for _ in 1 2 3 4 5 6; do sleep 0.5; heartbeat; reap_stale; done"
    assert fleet.sh(f"next_task > /dev/null; {beats}", DIBS_TTL="1") == ""


def test_an_expired_claim_can_be_taken_like_an_available_task(fleet: Fleet) -> None:
    fleet.add("a", "b")
    fleet.sh("claim_task a; claim_task b", DIBS_TTL="1", DIBS_OWNER="you")
    fleet.sh("sleep 1.1; next_task", code=4)
    assert fleet.sh("sleep 0.9; claim_task a").startswith("a.f2a1.me-")
    assert fleet.sh("next_task").startswith("b.f2a1.me-")


@pytest.mark.parametrize(
    ("ttl", "seconds"), [('"60s"', 60), ('"5m"', 300), ('"1500ms"', 1.5), ("45", 45), ('"0.5s"', 0)]
)
def test_the_lease_of_the_settings_is_a_number_or_a_time(
    fleet: Fleet, ttl: str, seconds: float
) -> None:
    fleet.add("a")
    (fleet.path / ".dibs/board.toml").write_text(f"format = 2\nttl = {ttl}\nplain_ttl = {ttl}\n")
    if not seconds:
        fleet.sh("next_task", code=1)
        return
    fleet.sh("next_task")
    (holder,) = fleet.board().snapshot().holders.values()
    assert holder.ttl == seconds


def test_an_owner_can_resume_its_expired_claim_without_its_name(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.sh("next_task", DIBS_TTL="1")
    fleet.sh("sleep 1.1; claim_task --resume a", code=4)
    assert fleet.sh("sleep 0.9; claim_task --resume a").startswith("a.f2.me-")


def test_the_shell_reaper_leaves_plain_claims_to_dibs(fleet: Fleet) -> None:
    for name in ("a.claimed", "b.f1.dibs-0123456789.claimed", "c.f1.me-0123456789.held"):
        (fleet.path / name).touch()
    before = fleet.names()
    (fleet.path / ".dibs/board.toml").write_text('ttl = 1\nplain_ttl = 1\ndurability = "off"\n')
    fleet.sh("reap_stale; sleep 2; reap_stale; sleep 1; reap_stale; next_task", code=4)
    assert fleet.names() == before


def test_the_loop_commits_and_fails_by_the_handlers_exit_code(fleet: Fleet) -> None:
    fleet.add("a", "b")
    script = 'h() { echo "$1 $DIBS_ID"; [ "$DIBS_ID" = a ]; }; process_loop h did'
    assert fleet.sh(script).split("\n") == ["did a", *["did b"] * 5]
    found = fleet.names()
    assert found[0].startswith("done/a.f1.")
    assert found[1].startswith("failed/b.f5a5.")
    assert fleet.board().log.of("b")[-1].reason == "exit code 1"


def test_the_loop_beats_while_the_handler_works(fleet: Fleet) -> None:
    fleet.add("a")
    reaper = "(for _ in 1 2 3 4 5 6 7 8; do sleep 0.3; reap_stale; done) &"
    assert fleet.sh(f"{reaper} process_loop sleep 2.2; wait", DIBS_TTL="1") == ""
    assert fleet.names()[0].startswith("done/a.f1.")


def test_a_killed_loop_stops_beating(fleet: Fleet) -> None:
    fleet.add("a")
    text = f". '{LIBRARY}'; process_loop sleep 30"
    env = os.environ | {"DIBS_DIR": str(fleet.path), "DIBS_TTL": "1"}
    loop = subprocess.Popen([*fleet.program, "-c", text], env=env, start_new_session=True)
    try:
        records = fleet.path / ".dibs/records"
        (record,) = until(lambda: [*records.iterdir()] if records.is_dir() else [])
        first = record.stat().st_mtime_ns
        until(lambda: record.stat().st_mtime_ns > first)
        loop.kill()
        loop.wait()
        until(lambda: time.time() - record.stat().st_mtime > 2)  # six beats are missing
    finally:
        with suppress(ProcessLookupError):  # the remaining work may end first
            os.killpg(loop.pid, signal.SIGKILL)


def test_a_loop_leaves_no_process_when_it_ends(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.sh(
        "process_loop true", DIBS_TTL="3600"
    )  # returns when every writer of its pipes has ended


def test_names_and_options_of_the_caller_survive(fleet: Fleet) -> None:
    fleet.add("a")
    script = "IFS=x; x=1; n=2; LC_ALL=C; cd /; set -f; next_task > /dev/null; heartbeat; done_task"
    assert fleet.sh(f'{script}; echo "$x $n $PWD $-"').startswith("1 2 / ")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_it_works_in_bash(scratch: Path) -> None:
    fleet = Fleet(scratch, ["bash", "--posix"])
    fleet.add("a", "b c", "d")
    script = "set -eu; next_task; heartbeat; verify_ownership; fail_task; process_loop true"
    fleet.sh(script, DIBS_TTL="1", DIBS_META='é "x"')
    assert [n[:8] for n in fleet.names()] == ["done/a.f", "done/b=2", "done/d.f"]
    assert fleet.board().check() == []


@pytest.mark.parametrize("path", [LIBRARY], ids=["dibs.sh"])
def test_shellcheck_finds_nothing(path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", "-s", "sh", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_library_is_in_the_package(scratch: Path) -> None:
    settle(scratch / "board")
    assert LIBRARY.is_file()
    assert LIBRARY.parent.parent == Path(dibs.__file__).parent
