"""The storm of acts in its short form, the mistakes that it must find, and real kills."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs import Event, Task
from dibs.files import acts, moves
from dibs.files.board_files import BoardFiles
from dibs.files.journal import Journal
from dibs.model.events import INTENT
from dibs.model.names import exact, read_any
from dibs.model.undoing import LastActs
from tests.tui.act_storm import Fault, storm
from tests.tui.terminal import environment


def test_acts_hit_only_shown_names_and_ledger_journal_and_directory_agree() -> None:
    figures = storm(rounds=50, seed=1)
    print(figures)
    assert figures["steps"] == 20_000
    for what in (
        *("done", "changed", "gone", "undone", "not undone", "killed"),
        *("intents alone", "crashed after the rename"),
    ):
        assert figures[what] > 2, what
    assert figures["intents alone"] > figures["crashed after the rename"]


def _acts_on_what_is_there_now(patch: pytest.MonkeyPatch) -> None:
    seen = acts.seen

    def careless(store: BoardFiles, text: str, *states: str) -> Task:
        if "/" in text and not text.startswith(("done/", "failed/")):
            return seen(store, text, *states)
        task = next(t for t in map(read_any, exact(text)) if t is not None)
        now = [t for t in store.find(task.id) if t.state in states and not t.is_takeover]
        return now[0] if now else seen(store, text, *states)

    patch.setattr(acts, "seen", careless)


def _undoes_the_last_act_whatever_was_shown(patch: pytest.MonkeyPatch) -> None:
    undoable = acts.undoable

    def careless(
        store: BoardFiles, what: str | Event | None = None, last: LastActs | None = None
    ) -> Event | None:
        return undoable(store, what.id if isinstance(what, Event) else what, last)

    patch.setattr(acts, "undoable", careless)


def _believes_every_rename(patch: pytest.MonkeyPatch) -> None:
    move = moves.move

    def believing(store: BoardFiles, src: str, dst: str, **how: Any) -> bool:
        return move(store, src, dst, **how) or True

    patch.setattr(moves, "move", believing)


def _never_writes(verb: str) -> Callable[[pytest.MonkeyPatch], None]:
    write = Journal.write

    def forgetful(journal: Journal, what: str, *about: Any, **named: Any) -> None:
        if what != verb:
            write(journal, what, *about, **named)

    return lambda patch: patch.setattr(Journal, "write", forgetful)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (_acts_on_what_is_there_now, "had not been shown"),
        (_undoes_the_last_act_whatever_was_shown, "the undo of"),
        (_believes_every_rename, "--seed"),
        (_never_writes(INTENT), "without an intent"),
        (_never_writes("park"), "was reported, and the journal has None"),
    ],
    ids=["retries on the newer", "undoes another", "believes", "no intent", "no outcome"],
)
def test_the_storm_finds_each_kind_of_mistake(
    monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], None], words: str
) -> None:
    mistake(monkeypatch)
    with pytest.raises(Fault, match=words):
        storm(rounds=40, seed=1)


ACTING = """\
import signal, sys, threading
import dibs
from dibs.files.disk import Disk
from dibs_tui.acting.execute import execute, judge_all
from dibs_tui.acting.plan import ACTS, Target

path, moment, *idents = sys.argv[1:]
board = dibs.open(path)
tasks = [board.find(ident)[0] for ident in idents]
targets = [Target(task, task.name, "claimed", "", 0.0) for task in tasks]
rename = Disk.rename

def slow(disk, src, dst, keep=False):
    here = src == tasks[1].name
    if here and moment == "before":
        print("now", flush=True)
        signal.pause()
    rename(disk, src, dst, keep)
    if here:
        print("now", flush=True)
        signal.pause()

Disk.rename = slow
items = list(judge_all(board, targets))
execute(lambda: board, ACTS["force-release"], items, "gone", "ada@desk", threading.Event(),
     lambda outcome: print(outcome.word, flush=True))
"""
"""A plan of three acts that waits to be killed around the rename of the second."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_operator_leaves_an_intent_without_an_outcome(tmp_path: Path, moment: str) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    claims = {}
    for ident in ("one", "two", "three"):
        board.add(ident)
        claims[ident] = board.claim(ident, owner="web-3", ttl=600)
    program = [sys.executable, "-c", ACTING, str(board.location.where), moment, *claims]
    with subprocess.Popen(
        program, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(2)] == ["done", "now"]
        process.send_signal(signal.SIGKILL)
    verbs = {
        ident: [event.verb for event in board.log.of(ident) if event.by == "ada@desk"]
        for ident in claims
    }
    assert verbs == {"one": ["force-release"], "two": [INTENT], "three": []}
    states = {ident: board.find(ident)[0].state for ident in claims}
    two = "claimed" if moment == "before" else "available"
    assert states == {"one": "available", "two": two, "three": "claimed"}
    (intent,) = [event for event in board.log.of("two") if event.verb == INTENT]
    assert claims["two"] is not None
    assert intent.src == claims["two"].task.name
    assert intent.dst == "two.f1.available"
    assert "force-release: gone" in intent.reason
    with pytest.raises(dibs.UnknownId):
        board.undo("two")
