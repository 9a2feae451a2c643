"""`dibs run` in a loop, with several jobs, waiting, under a lock, and its events."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.files.claims import FilesClaim
from dibs.model import names
from dibs.model.task import FREE, Stamp
from dibs.run.job import why_stopped
from dibs.run.reporting import EventWriter, Stderr
from tests.stress.running import Site, alive, ended, events, site, until

EVENT = {"v", "n", "event", "board", "id", "kind", "claim", "fence", "ttl"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        yield found


def test_a_loop_takes_the_next_until_none_is_left(place: Site) -> None:
    for name in "abc":
        place.board.add(name)
    out, _ = ended(place.run("--loop", "--", "sh", "-c", "echo $DIBS_ID"), 0)
    assert out == b"a\nb\nc\n"
    assert {place.state(name).state for name in "abc"} == {"done"}
    ended(place.run("--loop", "--", "true"), 4)


def test_a_loop_continues_after_a_failure_and_ends_with_its_code(place: Site) -> None:
    place.path.joinpath(".dibs/board.toml").write_text("max_attempts = 1\n")
    for name in "abc":
        place.board.add(name)
    ended(place.run("--loop", "--", "sh", "-c", "[ $DIBS_ID != b ] || exit 9"), 9)
    assert [place.state(name).state for name in "abc"] == ["done", "failed", "done"]


def test_a_loop_leaves_retries_for_later_and_says_so(place: Site) -> None:
    place.path.joinpath(".dibs/board.toml").write_text('retry = ["10m"]\n')
    for name in "abc":
        place.board.add(name)
    _, err = ended(place.run("--loop", "--", "sh", "-c", "[ $DIBS_ID != b ] || exit 9"), 9)
    assert [place.state(name).state for name in "abc"] == ["done", "later", "done"]
    said = re.search(rb"dibs: 1 task starts later, the next in \S+: `--wait` stays for them\n", err)
    assert said, err
    _, err = ended(place.run("--loop", "--", "true"), 4)
    assert b"nothing to claim" in err
    assert b"1 task starts later" in err
    for quiet in (["--quiet"], ["--log-json"]):
        assert b"starts later" not in ended(place.run("--loop", *quiet, "--", "true"), 4)[1]


def test_one_job_at_a_time_is_a_loop_too(place: Site) -> None:
    for name in "abc":
        place.board.add(name)
    ended(place.run("--jobs", "1", "--", "true"), 0)
    assert {place.state(name).state for name in "abc"} == {"done"}


def test_a_lost_claim_decides_the_exit_code_over_other_jobs(
    place: Site,
) -> None:
    for name in "ab":
        place.board.add(name)
    program = (
        "ident = os.environ['DIBS_ID']\nnote(ident)\n"
        "while not os.path.exists(f'{notes}/go-{ident}'): time.sleep(0.01)\nsys.exit(7)"
    )
    run = place.run("--jobs", "2", "--ttl", "6", *place.python(program))
    lost, _ = place.pid("a"), place.pid("b")
    place.board.park(place.board.force_release(place.state("a").stem, "stuck").name, "no")
    until(lambda: not alive(lost))
    (place.notes / "go-b").touch()
    ended(run, 5)
    assert place.state("b").state == "failed"


def test_several_jobs_work_at_once_and_never_more(place: Site) -> None:
    names = [f"t{number}" for number in range(6)]
    for name in names:
        place.board.add(name)
    program = (
        "ident = os.environ['DIBS_ID']\nnote(ident)\n"
        "while not os.path.exists(f'{notes}/go-{ident}'): time.sleep(0.01)\n"
        "sys.exit(len(sys.stdin.read()))"
    )
    run = place.run("--jobs", "3", *place.python(program))
    for at, name in enumerate(names):
        for there in names[: at + 3]:
            place.note(there)
        claimed = [n for n in names if place.state(n).state == "claimed"]
        assert claimed == names[at : at + 3]
        (place.notes / f"go-{name}").touch()
        until(lambda name=name: place.state(name).state == "done")  # type: ignore[misc]
    ended(run, 0)


def test_a_signal_releases_the_claims_of_all_jobs(place: Site) -> None:
    for name in "abc":
        place.board.add(name)
    run = place.run("--jobs", "3", *place.python("note(os.environ['DIBS_ID'])\ntime.sleep(60)"))
    children = [place.pid(name) for name in "abc"]
    run.send_signal(signal.SIGTERM)
    ended(run, 143)
    assert not any(map(alive, children))
    assert [place.state(name).name for name in "abc"] == [f"{n}.f1.available" for n in "abc"]


def test_a_waiting_loop_claims_new_tasks(place: Site) -> None:
    run = place.run("--loop", "--wait", *place.python("note(os.environ['DIBS_ID'])"))
    for name in "ab":
        time.sleep(0.5)
        place.board.add(name)
        place.note(name)
    until(lambda: place.state("b").state == "done")
    run.send_signal(signal.SIGTERM)
    ended(run, 143)


def test_a_wait_that_times_out_ends_the_run(place: Site) -> None:
    start = time.monotonic()
    ended(place.run("--wait", "1", "--", "true"), 4)
    assert time.monotonic() - start >= 1
    place.board.add("a")
    ended(place.run("--loop", "--wait", "0.3", "--", "sleep", "0.5"), 0)


def test_waiting_for_seconds_costs_less_than_a_restart(place: Site) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended(place.run("--wait", "0", "--", "true"), 4)
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended(place.run("--wait", "3", "--", "true"), 4)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = [b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in
           ((before, start), (start, after))]  # fmt: skip
    assert own[1] - own[0] < 3 * own[0], "a wait that spins takes all the processor time"


def test_only_one_of_fifty_runs_under_one_lock_runs(place: Site) -> None:
    runs = [place.run("--lock", "nightly", *place.python("note('up')\nsys.stdin.read()"), stdin=-1)]
    place.pid("up")
    runs += [place.run("--lock", "nightly", "--", "true") for _ in range(49)]
    for run in runs[1:]:
        _, err = ended(run, 4)
        assert b"is held by" in err
    ended(runs[0], 0)
    assert place.state("nightly").name == names.unclaimed_name("nightly", Stamp(1), FREE)


def test_fifty_runs_that_wait_for_one_lock_run_one_after_another(place: Site) -> None:
    program = (
        "fd = os.open(f'{notes}/inside', os.O_CREAT | os.O_EXCL)\n"
        "time.sleep(0.02)\n"
        "open(f'{notes}/turns', 'a').write(os.environ['DIBS_FENCE'] + '\\n')\n"
        "os.unlink(f'{notes}/inside')\n"
    )
    many = [place.run("--lock", "door", "--wait", *place.python(program)) for _ in range(50)]
    for run in many:
        run.communicate(timeout=150)
    assert [run.returncode for run in many] == [0] * 50
    fences = [int(line) for line in place.note("turns").split()]
    assert len(fences) == 50
    assert fences == sorted(set(fences)), "one at a time, and fences only grow"


def test_a_failing_command_under_a_lock_frees_it_and_passes_on_its_code(place: Site) -> None:
    ended(place.run("--lock", "door", "--", "sh", "-c", "exit 9"), 9)
    assert place.state("door").state == "free"
    ended(place.run("--lock", "door", "--", "no-such-command"), 2)
    assert place.state("door").state == "free"


@pytest.mark.parametrize(
    "wrong",
    [
        ["--"],
        ["true"],
        ["--jobs", "0", "--", "true"],
        ["--jobs", "many", "--", "true"],
        ["a", "--loop", "--", "true"],
        ["a", "--jobs", "1", "--", "true"],
        ["a", "--lock", "door", "--", "true"],
        ["--lock", "door", "--loop", "--", "true"],
        ["--pid", "1", "--", "true"],
        ["--ttl", "0", "--", "true"],
        ["--nonsense", "--", "true"],
    ],
)
def test_invalid_combinations_are_refused_in_one_line(place: Site, wrong: list[str]) -> None:
    place.board.add("a")
    _, err = ended(place.run(*wrong), 2)
    assert len(err.splitlines()) == 1
    assert place.state("a").name == "a.available"


def test_an_unknown_or_finished_task_is_refused(place: Site) -> None:
    ended(place.run("a", "--", "true"), 3)
    place.board.add("a")
    ended(place.run("a", "--", "true"), 0)
    ended(place.run("a", "--", "true"), 3)


def test_a_quiet_run_hides_held_tasks_and_shows_every_error(
    place: Site,
) -> None:
    hold = place.run("--lock", "door", *place.python("note('up')\nsys.stdin.read()"), stdin=-1)
    place.pid("up")
    assert ended(place.run("--quiet", "--lock", "door", "--", "true"), 4) == (b"", b"")
    assert ended(place.run("--quiet", "--", "true"), 4) == (b"", b"")
    out, _ = ended(place.run("--quiet", "--json", "--lock", "door", "--", "true"), 4)
    assert json.loads(out)["status"] == "held"
    ended(hold, 0)
    _, err = ended(place.run("--quiet", "--lock", "door", "--", "no-such-command"), 2)
    assert b"no-such-command" in err
    place.board.add("a")
    _, err = ended(place.run("--quiet", "--", "sh", "-c", "echo trouble >&2; exit 3"), 3)
    assert err == b"trouble\n"


def test_every_event_is_versioned_and_numbered(place: Site) -> None:
    run = place.run("--log-json", "--wait", "--loop", *place.python("note('up')\ntime.sleep(60)"))
    assert run.stderr is not None
    first = run.stderr.readline()
    place.board.add("a")
    place.pid("up")
    run.send_signal(signal.SIGTERM)
    seen = events(first + ended(run, 143)[1])
    assert [event["n"] for event in seen] == list(range(1, len(seen) + 1))
    assert {event["v"] for event in seen} == {1}
    assert [event["event"] for event in seen] == ["waiting", "acquired", "released"]
    assert set(seen[0]) == {"v", "n", "event", "board"}
    assert set(seen[1]) == EVENT
    assert set(seen[2]) == EVENT | {"reason", "held"}


def test_done_failed_and_renewed_are_events(place: Site) -> None:
    place.path.joinpath(".dibs/board.toml").write_text("max_attempts = 1\n")
    place.board.add("a")
    place.board.add("b")
    wait = f"while ! [ -e {place.notes}/go-$DIBS_ID ]; do sleep 0.01; done"
    line = f"{wait}; printf 'no newline' >&2; [ $DIBS_ID = a ]"
    run = place.run("--log-json", "--ttl", "3", "--loop", "--", "sh", "-c", line)
    seen: list[dict[str, Any]] = []
    times: dict[str, float] = {}
    for name in "ab":
        for event in ("acquired", "renewed"):
            seen += read_until(run, event, name)
            times[f"{event} {name}"] = time.monotonic()
        (place.notes / f"go-{name}").touch()
    _, err = ended(run, 1)
    seen += events(err)
    times["ended"] = time.monotonic()
    once = ["acquired", "renewed"]
    names = [name for name, _ in groupby(event["event"] for event in seen)]
    assert names == [*once, "done", *once, "failed"]
    done, failed = (event for event in seen if event["event"] in ("done", "failed"))
    assert set(done) == EVENT | {"held"}
    assert set(failed) == EVENT | {"held", "exit", "reason"}
    assert (failed["exit"], failed["reason"]) == (1, "exit 1: no newline")
    least, most = times["renewed b"] - times["acquired b"], times["ended"] - times["renewed a"]
    assert least - 0.1 <= failed["held"] <= most + 0.1


def read_until(run: subprocess.Popen[bytes], event: str, ident: str) -> list[dict[str, Any]]:
    """The next events of a run, up to this one of this task."""
    assert run.stderr is not None
    found: list[dict[str, Any]] = []
    while not found or (found[-1]["event"], found[-1]["id"]) != (event, ident):
        line = run.stderr.readline()
        assert line, found
        found += events(line)
    return found


def test_lost_and_uncertain_are_events(place: Site) -> None:
    place.board.add("a")
    run = place.run("--log-json", "--ttl", "3", *place.python("note('up')\ntime.sleep(60)"))
    place.pid("up")
    place.board.force_release(place.state("a").stem, "stuck")
    last = events(ended(run, 5)[1])[-1]
    assert (last["event"], set(last)) == ("lost", EVENT | {"reason"})
    (place.notes / "up").unlink()
    run = place.run("--log-json", "--ttl", "3", *place.python("note('up')\ntime.sleep(60)"))
    place.pid("up")
    place.path.rename(place.path.with_name("away"))
    last = events(ended(run, 5)[1])[-1]
    assert (last["event"], set(last)) == ("uncertain", EVENT | {"reason"})


def test_a_line_for_people_has_the_name_of_the_claim_once(
    place: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    place.board.add("a")
    claim = place.board.claim("a", owner="w")
    assert isinstance(claim, FilesClaim)
    claim.deadline = 1
    with pytest.raises(dibs.Uncertain, match="commit finished work with done") as late:
        claim.beat()
    writer = EventWriter(Stderr(), as_json=False, board="b", runnable=str)
    writer.report("uncertain", claim, reason=why_stopped(late.value, claim.task))
    assert capfd.readouterr().err == (
        f"dibs: uncertain {claim.name}: its lease could not be renewed in time\n"
    )


def test_with_json_each_end_is_an_object_on_stdout(place: Site) -> None:
    place.board.add("a")
    out, _ = ended(place.run("--json", "--loop", "--", "true"), 0)
    found = json.loads(out)
    claim = place.state("a").stem
    about = {"v": 1, "board": str(place.path)}
    assert found == about | {"status": "done", "id": "a", "kind": "task", "claim": claim,
                             "fence": 1, "exit": 0}  # fmt: skip
    out, err = ended(place.run("--json", "--", "true"), 4)
    assert (json.loads(out), err) == (about | {"status": "empty"}, b"")
    hold = place.run("--lock", "door", *place.python("note('up')\nsys.stdin.read()"),
                     stdin=subprocess.PIPE)  # fmt: skip
    place.pid("up")
    out, err = ended(place.run("--json", "--lock", "door", "--", "true"), 4)
    assert (json.loads(out)["status"], err) == ("held", b"")
    ended(hold, 0)
