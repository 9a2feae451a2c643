"""Each verb with each of its requests, or the answer to it, lost: nothing twice, nothing lost.

    python -m tests.postgres.losses                  every verb, request and kind of loss
    python -m tests.postgres.losses board.claim      only this verb

A verb is called once undisturbed, which says how many requests it sends and what the board is
afterwards. Then it is called again on a new board for each request and each kind of loss. The
server is there all the time, so each call has to find out what became of its request, and to
return as if nothing had happened. The exit code is 0 when every call did.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import dibs
from dibs import board as protocols
from dibs.model.settings import Settings
from dibs.protocols import Claim, OutputKeeper, Presence, Retry
from tests.filesystems.remote import await_
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server, server
from tests.postgres.proxy import Loss, Proxy

Board = dibs.Board
LOSSES = (Loss.REQUEST, Loss.ANSWER, Loss.HALF, Loss.LATE)
SHORT = (Loss.ANSWER, Loss.LATE)
"""Those that are not found out by a call that only tries again."""
SILENT = ("board.add", "board.claim", "claim.beat", "claim.done", "board.find")
"""Verbs that are also tried with an answer that never comes, for which they wait long."""
GIVEN_UP = ("Uncertain: ", "StorageError: ")
"""What a call may say of a server that is silent for as long as its patience lasts."""
_NONCE = re.compile(r"[0-9A-F]{10}")
_TIME = re.compile(r"\bn\d+\.later|\d+\.\d+")


class Scene(NamedTuple):
    """One verb: what is there before, and the call."""

    act: Callable[[Board, Any], object]
    prepare: Callable[[Board], Any] = lambda board: None
    reads: bool = False
    """Whether it changes nothing, so that it may just be tried again."""


def claimed(board: Board) -> dibs.Claim:
    board.add("build", b"what to do")
    board.add("deploy")
    found = board.claim("build", owner="me", metadata="key=value", ttl=600)
    assert found is not None
    return found


def locked(board: Board) -> dibs.Claim:
    return board.acquire("door", owner="me", ttl=600)


def done(board: Board) -> dibs.Task:
    return claimed(board).done(b"result")


def parked(board: Board) -> dibs.Task:
    board.add("build", b"what to do")
    return board.park("build.available", "no")


def asked(board: Board) -> dibs.Task:
    return claimed(board).ask("which branch?")


def waiting(board: Board) -> None:
    for ident in ("build", "deploy", "test"):
        board.add(ident, b"what to do")


def purged(board: Board) -> None:
    done(board)
    board.purge(0)


def paused(board: Board) -> dibs.Pause:
    board.add("build")
    return board.pause_claims("noon")[0]


def kept(board: Board) -> dibs.Claim:
    claim = claimed(board)
    claim.keep_output(65_536).keep(b"compiling\n", 0)
    return claim


def dead(board: Board) -> dibs.Claim:
    """A claim whose process has exited."""
    board.add("build")
    here = board.host.process(1)
    assert here is not None
    found = board.claim("build", process=here._replace(pid=2**22 - 7))
    assert found is not None
    return found


def twice_prioritized(board: Board) -> None:
    waiting(board)
    board.prioritize("build.available", 9)


def one_slot(board: Board) -> None:
    """The first of two slots is held, so that only the other is free."""
    board.acquire("gpu", ttl=600)


def due(board: Board) -> None:
    """A later task whose time has come."""
    board.add("soon", start_in=0.001)
    await_(lambda: board.entries()[0].starts == 0, "it is never due")


def read(act: Callable[[Board, Any], object], prepare: Callable[[Board], Any] = claimed) -> Scene:
    """A verb that only reads."""
    return Scene(act, prepare, reads=True)


SCENES: Mapping[str, Scene] = {
    "board.add": Scene(lambda b, _: b.add("build", b"what to do", priority=9)),
    "board.room": read(lambda b, _: b.room(0)),
    "board.claim": Scene(lambda b, _: b.claim(owner="me"), waiting),
    "board.claim_many": Scene(lambda b, _: b.claim_many(2, owner="me"), waiting),
    "board.attach": read(lambda b, c: b.attach(c.name)),
    "board.resume": Scene(lambda b, c: b.resume("build", owner="me", name=c.name), claimed),
    "board.acquire": Scene(lambda b, _: b.acquire("door", owner="me")),
    "board.status": read(lambda b, _: b.status("door").owner, locked),
    "board.waiters": read(lambda b, _: b.waiters()),
    "board.reap": Scene(lambda b, _: b.reap().tasks, dead),
    "board.forget": Scene(lambda b, _: b.forget("build"), purged),
    "board.forget_each": Scene(lambda b, _: b.forget_each(["build", "none"])[0], purged),
    "board.purge": Scene(lambda b, _: b.purge(0), done),
    "board.force_release": Scene(lambda b, c: b.force_release(c.name, "stuck"), claimed),
    "board.reap_claim": Scene(lambda b, c: b.reap_claim(c.name), dead),
    "board.resolve": read(lambda b, _: b.resolve("build\ndeploy")),
    "board.requeue": Scene(lambda b, t: b.requeue(t.name, "again"), parked),
    "board.requeueable": read(lambda b, t: b.requeueable(t.name), parked),
    "board.park": Scene(lambda b, _: b.park("build.available", "no"), waiting),
    "board.answer": Scene(lambda b, t: b.answer(t.name, "main"), asked),
    "board.prioritize": Scene(lambda b, _: b.prioritize("build.available", 9), waiting),
    "board.prioritise": Scene(lambda b, _: b.prioritise("build.available", 0), waiting),
    "board.undo_steps": read(lambda b, _: len(list(b.undo_steps())), twice_prioritized),
    "board.not_undoable": read(
        lambda b, _: b.not_undoable(b.log.of("build")[-1]), twice_prioritized
    ),
    "board.undoable": read(lambda b, _: b.undoable("build"), twice_prioritized),
    "board.last_acts": read(lambda b, _: b.last_acts(["build"]), twice_prioritized),
    "board.undo": Scene(lambda b, _: b.undo("build"), twice_prioritized),
    "board.pause_claims": Scene(lambda b, _: b.pause_claims("noon")[1], claimed),
    "board.resume_claims": Scene(lambda b, p: len(b.resume_claims([p.name])), paused),
    "board.pauses": read(lambda b, _: b.pauses(), paused),
    "board.snapshot": read(lambda b, _: sorted(b.snapshot().tasks)),
    "board.count_apart": read(lambda b, _: b.count_apart(), done),
    "board.entries": read(lambda b, _: [e.state for e in b.entries()]),
    "board.entries_of": read(lambda b, _: len(b.entries_of(b.find("build")))),
    "board.claims_with": read(lambda b, _: len(b.claims_with("key", "value"))),
    "board.find": read(lambda b, _: b.find("build")),
    "board.why_missing": read(lambda b, _: b.why_missing("none")),
    "board.holder": read(lambda b, c: b.holder(c.task) is not None),
    "board.evidence": read(lambda b, c: b.evidence(c.task).verdict),
    "board.questions": read(lambda b, t: len(b.questions(t)), asked),
    "board.outputs": read(lambda b, _: len(b.outputs("build")), kept),
    "board.output": read(lambda b, c: b.output(c.name) is not None, kept),
    "board.result": read(lambda b, t: b.result(t), done),
    "board.payload": read(lambda b, c: b.payload(c.task)),
    "claim.payload": read(lambda b, c: c.payload()),
    "claim.beat": Scene(lambda b, c: c.beat(note="step 1", metadata="a=b"), claimed),
    "claim.confirm": Scene(lambda b, c: c.confirm(metadata="a=b"), claimed),
    "claim.release_unconfirmed": Scene(lambda b, c: c.release_unconfirmed("gone"), claimed),
    "claim.note": Scene(lambda b, c: c.note("step 1"), claimed),
    "claim.keep_output": Scene(lambda b, c: c.keep_output(65_536) and None, claimed),
    "claim.verify": read(lambda b, c: c.verify()),
    "claim.done": Scene(lambda b, c: c.done(b"result"), claimed),
    "claim.fail": Scene(lambda b, c: c.fail("broken", retry_in=60), claimed),
    "claim.release": Scene(lambda b, c: c.release("later"), claimed),
    "claim.release (a lock)": Scene(lambda b, c: c.release(), locked),
    "claim.ask": Scene(lambda b, c: c.ask("which branch?"), claimed),
    "output.keep": Scene(lambda b, c: c.keep_output(65_536).keep(b"compiling\n", 0), claimed),
    "log.note": Scene(lambda b, _: b.log.note("report", "the nightly run begins")),
    "log.end": read(lambda b, _: b.log.since(b.log.end())[0]),
    "log.since": read(lambda b, _: b.log.since()[0]),
    "log.of": read(lambda b, _: b.log.of("build")),
    "log.oldest_first": read(lambda b, _: list(b.log.oldest_first())),
    "log.newest_first": read(lambda b, _: list(b.log.newest_first())),
    "log.rates": read(lambda b, _: b.log.rates(0.0) is not None),
    "log.totals": Scene(lambda b, _: b.log.totals()["adds"], waiting),
    "log.omitted": read(lambda b, _: b.log.omitted()),
    "board.add (a file)": Scene(lambda b, _: b.add("build", io.BytesIO(b"x" * 100_000))),
    "board.claim (one named)": Scene(lambda b, _: b.claim("deploy", owner="me"), waiting),
    "board.claim (a later one)": Scene(lambda b, _: b.claim(owner="me"), due),
    "board.acquire (slots)": Scene(lambda b, _: b.acquire("gpu", slots=2), one_slot),
    "board.park (a claim)": Scene(lambda b, c: b.park(c.task.name, "no"), claimed),
    "board.requeue (done)": Scene(lambda b, t: b.requeue(t.name), done),
    "board.requeue (asked)": Scene(lambda b, t: b.requeue(t.name), asked),
}
"""By protocol and verb; a text in brackets tells several of one verb apart."""

OTHERS = {
    **dict.fromkeys(("working", "work", "lock"), "made of claim, beat and its ends"),
    **dict.fromkeys(("wait_for", "wait_ended", "retry", "presence"), "repeat other verbs"),
    **dict.fromkeys(("check", "repair", "probe"), "not on a database"),
    "require_mounted": "asks nothing",
    "pause": "sleeps",
    "for_host": "asks nothing: the same session",
    "close": "asks nothing",
    "watch": "has its own tests",
    **dict.fromkeys(("together", "owner_name"), "ask nothing of a database"),
    "begin": "of a retry, which repeats other verbs",
    "held": "of a retry",
    "missed": "of a retry",
    "due": "of a retry",
    "keep": "of a presence: never raises, and decides nothing; that of an output is tried",
    "end": "of a presence; that of a log is tried",
}
"""Verbs that are not tried, and why."""


def verbs() -> Iterator[tuple[str, str]]:
    """Every verb of the protocols, with its protocol."""
    kinds = {
        "board": Board,
        "claim": Claim,
        "log": protocols.Log,
        "output": OutputKeeper,
        "retry": Retry,
        "presence": Presence,
    }
    for kind, protocol in kinds.items():
        for name, found in vars(protocol).items():
            if callable(found) and not name.startswith("_"):
                yield kind, name


def untried() -> list[str]:
    """The verbs that have no scene and no reason for it."""
    tried = {name.partition(" ")[0] for name in SCENES}
    return [f"{k}.{v}" for k, v in verbs() if f"{k}.{v}" not in tried and v not in OTHERS]


class Outcome(NamedTuple):
    """What a call returned, and what the board is after it."""

    value: object
    picture: object


class Trial(NamedTuple):
    """One call with one loss."""

    verb: str
    number: int
    loss: Loss
    wrong: str
    """What went wrong; empty if nothing."""

    def __str__(self) -> str:
        return f"{self.verb}, {self.loss} {self.number} lost: {self.wrong or 'right'}"


class Stage:
    """A board behind a proxy, emptied for each call."""

    def __init__(
        self, there: Server, proxy: Proxy, prepare: Callable[[Site], object] = lambda place: None
    ) -> None:
        self._place = new_site(there, Settings(retry=(60,)))
        self._proxy = proxy
        prepare(self._place)

    def called(self, scene: Scene, number: int = -1, loss: Loss = Loss.ANSWER) -> Outcome:
        """Call a verb on the empty board, with one request lost."""
        place = self._place
        place.clear()
        board = dibs.open(self._proxy.url(place.database))
        given = scene.prepare(board)
        if number >= 0:
            self._proxy.lose(number, loss)
        else:
            self._proxy.count()
        try:
            value: object = shape(scene.act(board, given))
        except dibs.DibsError as error:
            value = f"{type(error).__name__}: {error}"
        finally:
            self._proxy.spare()
        self._proxy.deliver()
        return Outcome(value, picture(place))

    def requests(self, scene: Scene) -> tuple[Outcome, int]:
        """What an undisturbed call does, and how many requests it sends."""
        found = self.called(scene)
        return found, self._proxy.requests

    def trials(self, verb: str, losses: Iterable[Loss], *, last: bool = False) -> Iterator[Trial]:
        """A verb with each of its requests lost in each way, or with the `last` one only."""
        scene = SCENES[verb]
        expected, count = self.requests(scene)
        for loss in losses:
            for number in range(count - 1 if last else 0, count):
                found = self.called(scene, number, loss)
                assert self._proxy.lost == 1, f"{verb}: request {number} was not lost"
                given_up = loss is Loss.SILENCE and str(found.value).startswith(GIVEN_UP)
                wrong = "" if given_up else difference(expected, found)
                yield Trial(verb, number, loss, wrong)


def difference(expected: Outcome, found: Outcome) -> str:
    """What is not as it should be."""
    if found.picture != expected.picture:
        return f"{found.value}; the board is {found.picture}, not {expected.picture}"
    if found.value != expected.value:
        return f"it returned {found.value}, not {expected.value}"
    return ""


def shape(value: object) -> object:
    """A value without what differs from call to call."""
    if isinstance(value, dibs.Task):
        return shape(str(value.name))
    if isinstance(value, dibs.Event):
        return (value.verb, shape(value.src), shape(value.dst))
    if isinstance(value, str):
        return _TIME.sub("T", _NONCE.sub("X", value))
    if isinstance(value, tuple | list):
        return [shape(each) for each in value]
    if isinstance(value, bytes | int | None):
        return value
    if (record := getattr(value, "record", None)) is not None:
        return ("claim", shape(record.owner), shape(getattr(value, "name", "")))
    return type(value).__name__


_PICTURE = {
    "task": "SELECT name, state, fence, attempts, priority, question, answer FROM dibs.task"
    " WHERE eid <> '' ORDER BY eid",
    "claim": "SELECT name, ttl, note FROM dibs.claim ORDER BY eid",
    "event": "SELECT eid, n, verb, src, dst, reason, note FROM dibs.event ORDER BY eid, n",
    "payload": "SELECT * FROM dibs.payload ORDER BY eid",
    "question": "SELECT eid, fence, answer FROM dibs.question ORDER BY eid, fence, answer",
    "result": "SELECT stem, data FROM dibs.result ORDER BY stem",
    "output": "SELECT stem, begins, data FROM dibs.output ORDER BY stem, begins",
    "pause": "SELECT count(*) FROM dibs.pause",
    "waiter": "SELECT count(*) FROM dibs.waiter",
}


def picture(place: Site) -> object:
    """All tables of a board, without times and nonces; and what contradicts itself."""
    tables = zip(_PICTURE, place.each(_PICTURE.values()), strict=True)
    found = {what: [shape(row) for row in rows] for what, rows in tables}
    return {**found, "contradictions": place.contradictions()}


def main(wanted: list[str]) -> int:
    wrong = count = 0
    with server() as there, Proxy(there.socket) as proxy:
        stage = Stage(there, proxy)
        for verb in wanted or SCENES:
            silence = (Loss.SILENCE,) if verb in SILENT else ()
            for trial in stage.trials(verb, (*LOSSES, *silence)):
                count += 1
                if trial.wrong:
                    wrong += 1
                    print(trial, flush=True)
    print(f"{len(SCENES)} scenes, {count} calls with a loss, {wrong} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
