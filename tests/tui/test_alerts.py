"""Alerts sound on transitions, not on states, and not too often."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import dibs
from dibs import Event, Task, Verdict
from dibs_tui.alerts import Alerts
from dibs_tui.config import Config
from dibs_tui.model.board import BoardModel
from dibs_tui.model.seen import Seen, Status
from tests.patience import PATIENCE
from tests.tui.hearing import passed_through

FAILED = Task("failed/t.f1.w-0123456789", "t", "failed", 1, 0, 5, "w-0123456789")


class Terminal:
    """What was written to it."""

    def __init__(self) -> None:
        self.written: list[str] = []


def alerts(terminal: Terminal, config: Config, *, muted: bool = False) -> Alerts:
    return Alerts(config, terminal.written.append, muted=muted)


def known() -> BoardModel:
    model = BoardModel()
    model.whole = True
    return model


def test_what_turns_bad_rings_once_with_its_number() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(notify="osc9"))
    found.seen(Seen(stale={"a": Verdict.EXPIRED, "b": Verdict.DEAD}, came=(FAILED,)), known())
    found.tick(Status())
    found.tick(Status())
    assert terminal.written == ["\a", "\x1b]9;dibs: 2 stale, 1 failed\x1b\\"]


def test_what_was_bad_when_the_board_was_opened_is_no_news() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config())
    found.seen(Seen(stale={"a": Verdict.EXPIRED}, came=(FAILED,), whole=False), known())
    found.seen(Seen(stale={"a": None}), known())
    found.tick(Status())
    assert terminal.written == []


def test_alerts_are_rate_limited_and_lose_nothing() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(alert_every=3600, notify="osc777"))
    for name in "abc":
        found.seen(Seen(stale={name: Verdict.EXPIRED}), known())
        found.tick(Status())
    assert terminal.written == ["\a", "\x1b]777;notify;dibs;dibs: 1 stale\x1b\\"]
    found._due = 0.0
    found.tick(Status())
    assert terminal.written[-1] == "\x1b]777;notify;dibs;dibs: 2 stale\x1b\\"


def test_a_holder_that_came_back_is_told_in_words_and_many_by_their_number() -> None:
    terminal, model = Terminal(), known()
    found = alerts(terminal, Config(bell=False, notify="osc9", alert_every=0))

    def come_back(*numbers: int) -> None:
        for n in numbers:
            old = f"t{n}.f7.agent-{n}-0123456789"
            model.note(Event(1.0, "reap", f"t{n}", f"{old}.claimed", "", "ada"))
            model.note(Event(2.0, "refused", f"t{n}", old, "", f"agent-{n}", "done"))
        found.seen(Seen(), model)
        found.tick(Status())

    come_back(0)
    assert terminal.written == [], "who came back before the board was opened is no news"
    come_back(1)
    line = "agent-1 came back: its claim #7 is void · t1, it tried to commit"
    assert terminal.written == [f"\x1b]9;dibs: {line}\x1b\\"]
    model.aftermath.clear()
    come_back(2, 3)
    assert terminal.written[1:] == ["\x1b]9;dibs: 2 came back\x1b\\"]


def test_a_lost_storage_rings_when_it_is_lost_and_not_while_it_stays_lost() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(alert_every=0))
    for _ in range(3):
        found.tick(Status(trouble="missing"))
    found.tick(Status())
    found.tick(Status(trouble="denied"))
    assert terminal.written == ["\a", "\a"]


def test_muted_alerts_are_silent_and_are_not_made_up_for() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(), muted=True)
    found.seen(Seen(stale={"a": Verdict.EXPIRED}), known())
    found.tick(Status())
    found.muted = False
    found.tick(Status())
    assert terminal.written == []


def test_the_users_command_gets_the_words_and_no_shell(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("/bin/sh", "-c", f'printf %s "$1" > {out}.new && mv {out}.new {out}', "alert")
    found = alerts(Terminal(), Config(bell=False, alert_command=command))
    found.seen(Seen(stale={"$(touch /nowhere)": Verdict.DEAD}), known())
    found.tick(Status())
    deadline = time.monotonic() + PATIENCE
    while not out.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert out.read_text() == "dibs: 1 stale"
    all_done()


def test_a_command_that_hangs_before_it_begins_holds_up_nothing(tmp_path: Path) -> None:
    with passed_through(tmp_path) as mount:
        shutil.copy("/bin/true", mount.below / "alert")
        os.kill(mount.pid, signal.SIGSTOP)
        goes_on = threading.Timer(PATIENCE / 2, os.kill, (mount.pid, signal.SIGCONT))
        goes_on.start()
        command = (str(mount.place / "alert"),)
        found = alerts(Terminal(), Config(bell=False, alert_command=command))
        found.seen(Seen(stale={"a": Verdict.DEAD}), known())
        found.tick(Status())
        assert not goes_on.finished.is_set(), "it waited until the command could begin"
        goes_on.cancel()
        os.kill(mount.pid, signal.SIGCONT)
        all_done()


def test_a_command_that_is_not_there_is_tried_once() -> None:
    config = Config(bell=False, alert_every=0, alert_command=("/no/such/program",))
    found = alerts(Terminal(), config)
    found.seen(Seen(stale={"a": Verdict.DEAD}), known())
    found.tick(Status())
    all_done()
    assert found._config.alert_command == ()


def all_done() -> None:
    """Wait for the threads that work beside the screen."""
    for thread in threading.enumerate():
        if thread.name == "dibs-aside":
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_a_model_counts_stale_locks_apart_from_stale_claims(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "b", create=True)
    board.add("t")
    claim = board.claim("t", owner="w", ttl=60)
    lease = board.acquire("lock", owner="w", ttl=60)
    assert claim is not None
    view = board.view()
    view.scan()
    model = BoardModel(view.tasks)
    model.apply(Seen(came=tuple(view.tasks.values()), facts=view.facts()))
    assert (model.count("claimed"), model.count("held"), model.count("stale")) == (1, 1, 0)
    model.apply(Seen(stale={lease.task.name: Verdict.EXPIRED}))
    assert (model.count("claimed"), model.count("held"), model.count("stale")) == (1, 0, 1)
    model.apply(Seen(stale={lease.task.name: None, claim.task.name: Verdict.DEAD}))
    assert (model.count("claimed"), model.count("held"), model.count("stale")) == (0, 1, 1)
    lease.release()
    view.scan()
    model.apply(Seen(went=(lease.task,)))
    assert model.count("held") == 0
