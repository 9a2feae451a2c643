"""Pauses: who gets no new claim, who goes on, and what every reader sees."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.model.pauses import Pause, decode_pause, encode_pause, pause_of_text
from tests.contract.command import Command
from tests.contract.place import Place
from tests.filesystems.remote import await_

WEB = dibs.this_host()._replace(name="web-7")


def two(place: Place) -> None:
    place.board.add("a", b"one")
    place.board.add("b", b"two")


def test_a_pause_stops_new_claims_and_says_by_whom_and_why(place: Place) -> None:
    two(place)
    pause, held = place.board.pause_claims("deploy 2.1", by="ada@web-1")
    assert held == ()
    for board in (place.board, place.other()):
        for ident in (None, "a"):
            with pytest.raises(dibs.Paused) as caught:
                board.claim(ident)
            assert caught.value.pause == pause
            assert caught.value.exit_code == 4
            assert "ada@web-1" in str(caught.value)
            assert "deploy 2.1" in str(caught.value)
    assert place.names() == ["a.available", "b.available"]
    assert place.board.pauses() == place.other().pauses() == (pause,)
    assert (pause.by, pause.reason, pause.host, pause.until) == (
        place.signed("ada@web-1"),
        "deploy 2.1",
        "",
        None,
    )


def test_a_pause_lists_what_is_held_and_holders_go_on(place: Place) -> None:
    two(place)
    claim, lease = place.board.claim(), place.board.acquire("door")
    assert claim is not None
    _, held = place.other().pause_claims("deploy")
    assert {task.name for task in held} == {claim.task.name, lease.task.name}
    claim.beat()
    claim.verify()
    again = place.board.resume(claim.id, name=claim.name)
    assert again.fence == claim.fence + 1
    assert again.done().state == "done"
    lease.release()


def test_expired_claims_are_requeued_during_a_pause(place: Place) -> None:
    two(place)
    claim = place.board.claim("a")
    assert claim is not None
    place.board.pause_claims("deploy")
    place.board.reap()
    place.advance(200)
    with pytest.raises(dibs.Paused):
        place.board.claim()
    place.board.reap()
    assert [task.state for task in place.board.find("a")] == ["available"]


def test_a_resume_ends_exactly_the_pauses_that_it_names(place: Place) -> None:
    two(place)
    first, _ = place.board.pause_claims("deploy")
    second, _ = place.other().pause_claims("a disk is replaced")
    assert place.board.resume_claims([first.name]) == (first,)
    assert place.board.resume_claims([first.name]) == ()
    with pytest.raises(dibs.Paused) as caught:
        place.board.claim()
    assert caught.value.pause == second
    assert place.other().resume_claims([second.name]) == (second,)
    assert place.board.claim() is not None
    assert place.board.snapshot().strangers == 0


def test_only_workers_of_the_named_hosts_are_stopped(place: Place) -> None:
    two(place)
    pause, _ = place.board.pause_claims("new kernel", host="web-*")
    with pytest.raises(dibs.Paused):
        place.other(WEB).claim()
    claim = place.board.claim()
    assert claim is not None
    claim.release()
    place.board.resume_claims([pause.name])
    assert place.other(WEB).claim() is not None


def test_locks_are_paused_only_if_that_was_asked_for(place: Place) -> None:
    pause, _ = place.board.pause_claims("deploy")
    lease = place.board.acquire("door")
    place.board.pause_claims("deploy", locks=True)
    assert place.board.acquire("door", lease=lease.name).name == lease.name
    for _ in range(2):
        with pytest.raises(dibs.Paused):
            place.other().acquire("gate")
    lease.release()
    fences = [task.fence for task in place.board.find("door")]
    with pytest.raises(dibs.Paused):
        place.board.acquire("door")
    assert [task.fence for task in place.board.find("door")] == fences
    assert pause in place.board.pauses()


def test_a_pause_ends_by_itself(place: Place) -> None:
    two(place)
    pause, _ = place.board.pause_claims("lunch", seconds=60)
    assert pause.until == pytest.approx(pause.at + 60, abs=0.01)
    place.advance(50)
    with pytest.raises(dibs.Paused):
        place.board.claim()
    place.advance(20)
    assert place.board.pauses() == ()
    assert place.board.claim() is not None
    place.board.reap()
    assert place.board.check() == []


def test_a_waiter_goes_on_when_the_pause_ends(place: Place) -> None:
    two(place)
    place.board.pause_claims("lunch", seconds=30)
    claim = place.board.wait_for(place.board.claim, 600)  # a sleep moves the clocks of this place
    assert claim is not None
    place.board.pause_claims("lunch")
    with pytest.raises(dibs.Paused):
        place.board.wait_for(place.board.claim, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"reason": " \n"},
        {"reason": "x" * 1025},
        {"reason": "x", "seconds": 0},
        {"reason": "x", "seconds": float("nan")},
        {"reason": "x", "seconds": float("inf")},
        {"reason": "x", "seconds": True},
        {"reason": "x", "host": "two words"},
        {"reason": "x", "host": "a;b"},
        {"reason": "x", "host": "a" * 256},
        {"reason": "\ud800"},
        {"reason": b"x"},
    ],
)
def test_a_pause_without_a_reason_or_with_wrong_terms_is_refused(
    place: Place, wrong: dict[str, object]
) -> None:
    terms = {"reason": "why", **wrong}
    with pytest.raises(dibs.BadName):
        place.board.pause_claims(**terms)  # type: ignore[arg-type]
    with pytest.raises(dibs.BadName):
        place.board.resume_claims(["../x"])
    assert place.board.pauses() == ()


def test_a_board_opened_read_only_cannot_be_paused_but_shows_the_pause(place: Place) -> None:
    pause, _ = place.board.pause_claims("deploy")
    board = dibs.open(place.board.location.where, read_only=True)
    with pytest.raises(dibs.ReadOnly):
        board.pause_claims("more")
    with pytest.raises(dibs.ReadOnly):
        board.resume_claims([pause.name])
    assert board.snapshot().pauses == (pause,)


def test_a_pause_and_its_end_can_be_undone(place: Place) -> None:
    two(place)
    pause, _ = place.board.pause_claims("deploy", host="h-*", locks=True, seconds=500)
    event = place.board.undoable()
    assert event is not None
    assert (event.verb, place.board.not_undoable(event)) == ("pause", "")
    assert place.board.undo(event) is None
    assert place.board.pauses() == ()
    with pytest.raises(dibs.Changed):
        place.board.undo(event)
    assert place.board.undoable() is None
    again, _ = place.board.pause_claims("deploy", host="h-*", locks=True, seconds=500)
    place.board.resume_claims([again.name])
    assert place.board.undo() is None
    (restored,) = place.board.pauses()
    assert restored._replace(at=0, by="", until=0) == again._replace(at=0, by="", until=0)
    assert restored.until == pytest.approx(again.until, abs=1)
    assert pause.name != again.name


def test_a_pause_that_has_ended_cannot_be_undone(place: Place) -> None:
    place.board.pause_claims("lunch", seconds=10)
    place.advance(30)
    place.board.reap()
    event = next(place.board.undo_steps())[0]
    assert place.board.not_undoable(event) == "it has ended since"
    with pytest.raises(dibs.Changed):
        place.board.undo(event)
    pause, _ = place.board.pause_claims("lunch", seconds=10)
    place.board.resume_claims([pause.name])
    place.advance(30)
    event = next(place.board.undo_steps())[0]
    assert place.board.not_undoable(event) == "its end has passed"


def test_undo_goes_back_past_a_pause_to_an_act_on_a_task(place: Place) -> None:
    two(place)
    place.board.park("a.available", "not now")
    place.board.pause_claims("deploy")
    verbs = [step[0].verb for step in place.board.undo_steps()]
    assert verbs == ["pause", "park"]
    place.board.undo()
    undone = place.board.undo()
    assert undone is not None
    assert undone.name == "a.available"
    assert [step[0].verb for step in place.board.undo_steps("a")] == []


# The command line


def test_claim_answers_4_with_the_pause(command: Command) -> None:
    command("add", "a")
    name = command("pause", "--reason", "deploy \x1b[31m2.1", "--for", "30m")
    done = command.run("--json", "claim", "a")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr, found["status"]) == (4, b"", "paused")
    assert found["pause"] == name
    assert found["reason"] == "deploy \x1b[31m2.1"
    assert found["until"] - found["since"] == pytest.approx(1800, abs=0.01)
    assert set(found) == {
        *("v", "board", "status", "error", "pause", "by", "reason", "since", "until"),
        *("host", "locks"),
    }
    assert found["board"] == command.where
    command("claim", code=4)
    shown = command.run("ls").stderr.decode()
    assert "PAUSED: the board is paused by " in shown
    assert "deploy \\x1b[31m2.1" in shown
    command("resume")
    assert command("claim").startswith("a.f1.")


def test_resume_ends_the_pauses_of_the_board_and_leaves_those_of_hosts(command: Command) -> None:
    command("pause", "--reason", "deploy")
    host = command("pause", "--reason", "kernel", "--host", "web-*")
    assert json.loads(command("--json", "stats"))["pauses"] == 2
    shown = [json.loads(line) for line in command("--json", "pauses").splitlines()]
    assert [(row["status"], row["host"], row["held"]) for row in shown] == [
        ("paused", "", []),
        ("paused", "web-*", []),
    ]
    assert "nothing is held there" in command("pauses")
    done = command.run("resume")
    assert done.returncode == 0
    assert "still paused: host web-* is paused" in done.stderr.decode()
    refused = command("resume", code=3)
    assert "the board as a whole is not paused" in refused
    assert "host web-* is paused by " in refused
    assert "(`dibs resume --host 'web-*'` ends it)" in refused
    other = command("resume", "--host", "web-1", code=3)
    assert "host web-1 has no pause of exactly this name" in other
    assert command("resume", "--host", "web-*") == host
    assert command("resume") == "the board is not paused"
    assert json.loads(command("--json", "stats"))["pauses"] == 0
    command("resume", host, code=3)
    assert json.loads(command("--json", "pauses"))["status"] == "not-paused"


def test_undo_prints_the_command_that_undoes_a_pause(command: Command) -> None:
    name = command("pause", "--reason", "deploy")
    assert f"`dibs undo .paused/{name} -` undoes it" in command("undo", code=2)
    command("undo", f".paused/{name}", "-")
    command("undo", f".paused/{name}", "-", code=3)
    assert command("resume") == "the board is not paused"
    name = command("pause", "--reason", "deploy")
    command("resume")
    assert f"`dibs undo - .paused/{name}` undoes it" in command("undo", code=2)
    command("undo", "-", f".paused/{name}")
    assert command("resume", name) == name


def test_an_empty_host_is_refused_and_does_not_mean_the_board(command: Command) -> None:
    assert "--host: it is empty" in command("pause", "--reason", "kernel", "--host", "", code=2)
    assert command("pauses") == ""
    pause = command("pause", "--reason", "deploy")
    for words in (["--host", ""], ["--host="]):
        assert "--host: it is empty" in command("resume", *words, code=2)
    assert command("pauses").startswith(pause)


def test_a_drain_shows_what_the_host_still_holds(command: Command) -> None:
    command("add", "a", "b")
    command("claim", "a", "--owner", "me")
    host = dibs.this_host().name
    done = command.run("pause", "--reason", "kernel", "--host", host)
    assert "1 still held: a.f1.me-" in done.stderr.decode()
    held = json.loads(command("--json", "pause", "--reason", "kernel", "--host", host))["held"]
    assert [(row["id"], row["owner"], row["host"]) for row in held] == [("a", "me", host)]
    assert json.loads(command("--json", "pause", "--reason", "x", "--host", "far"))["held"] == []


def test_what_is_stale_is_not_counted_as_held(command: Command) -> None:
    command("add", "a", "b")
    command("acquire", "lock", "--ttl", "1", "--owner", "me")
    command("claim", "a", "--ttl", "1", "--owner", "me")
    command("claim", "b", "--owner", "you")
    stale = '"stale": 2'
    await_(lambda: stale in command("--json", "stats"), "they never became stale")
    seen = json.loads(command("--json", "pause", "--reason", "kernel", "--locks"))
    assert [row["id"] for row in seen["held"]] == ["b"]
    assert {row["id"] for row in seen["stale"]} == {"a", "lock"}
    shown = command("pauses")
    assert "1 still held: b.f1.you-" in shown
    reap = command.runnable("2 stale, which `dibs reap` ends: ")
    assert reap in shown
    command("reap")
    seen = json.loads(command("--json", "pauses"))
    assert [row["id"] for row in seen["held"]] == ["b"]
    assert seen["stale"] == []
    assert "stale" not in command("pauses")


def test_a_host_can_have_a_name_of_its_own(command: Command) -> None:
    command("add", "a")
    command("pause", "--reason", "kernel", "--host", "blue-?")
    command.env = command.env | {"DIBS_HOST": "blue-1"}
    command("claim", code=4)
    command.env = command.env | {"DIBS_HOST": "green-1"}
    assert command("claim").startswith("a.f1.")
    assert json.loads(command("--json", "ls"))["host"] == "green-1"


# The file and the log


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
hosts = st.one_of(st.just(""), st.from_regex(r"[a-zA-Z0-9*?.\[\]é-]{1,20}", fullmatch=True))
pauses = st.builds(
    Pause,
    st.just("00000000AA"),
    texts,
    texts,
    st.floats(0, 2**33).map(lambda at: round(at, 3)),
    st.one_of(st.none(), st.integers(0, 2**35).map(float)),
    hosts,
    st.booleans(),
)


@given(pauses)
def test_a_pause_is_read_back_from_its_file_and_from_the_log(pause: Pause) -> None:
    assert decode_pause(pause.name, encode_pause(pause)) == pause
    assert pause_of_text(pause.name, pause.by, pause.at, pause.text) == pause


@given(st.one_of(st.binary(max_size=300), st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["v", "by", "reason", "at", "until", "host", "locks"]), inner
        ),
    ),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode())))  # fmt: skip
def test_any_other_file_is_no_pause_or_a_valid_one(data: bytes) -> None:
    pause = decode_pause("00000000AA", data)
    if pause is not None:
        assert decode_pause(pause.name, encode_pause(pause)) == pause


def test_a_file_that_is_too_long_is_no_pause() -> None:
    pause = Pause("00000000AA", "x" * 5000, "y" * 5000, 1.0)
    assert decode_pause(pause.name, encode_pause(pause)) is None
