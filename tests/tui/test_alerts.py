"""Alerts ring when a state changes, not while it lasts, and not too often."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from dibs import Event, Task, Verdict
from dibs.files.engine import open_directory
from dibs.model.delta import Delta
from dibs.model.health import Health, Trouble
from dibs_tui.acting.alerts import Alerts
from dibs_tui.model.board import BoardModel
from dibs_tui.settings.config import Config
from tests.patience import PATIENCE
from tests.tui.recorder import passed_through

pytestmark = pytest.mark.fast("dibs_tui.acting")

FAILED = Task("failed/t.f1.w-0123456789", "t", "failed", 1, 0, 5, "w-0123456789")


class Terminal:
    """Records what is written to it."""

    def __init__(self) -> None:
        self.written: list[str] = []


def alerts(terminal: Terminal, config: Config, *, muted: bool = False) -> Alerts:
    return Alerts(config, terminal.written.append, muted=muted)


def known() -> BoardModel:
    model = BoardModel()
    model.complete = True
    return model


def test_a_change_for_the_worse_rings_once_with_its_count() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(notify="osc9"))
    found.note(Delta(stale={"a": Verdict.EXPIRED, "b": Verdict.DEAD}, added=(FAILED,)), known())
    found.tick(Health())
    found.tick(Health())
    assert terminal.written == ["\a", "\x1b]9;dibs: 2 stale, 1 failed\x1b\\"]


def test_a_stale_claim_that_is_proven_later_does_not_ring_again() -> None:
    terminal, model = Terminal(), known()
    found = alerts(terminal, Config())
    opened, more = Delta(stale={"a": Verdict.UNKNOWN}, complete=False), {"b": Verdict.UNKNOWN}
    proven = {"a": Verdict.EXPIRED, "b": Verdict.EXPIRED}
    for delta in (opened, Delta(stale={"a": Verdict.EXPIRED}), Delta(stale=more)):
        model.apply(delta)
        found.note(delta, model)
    found.tick(Health())
    assert terminal.written == ["\a"], "for b"
    delta = Delta(stale=proven)
    model.apply(delta)
    found.note(delta, model)
    assert not found._gathered


def test_trouble_from_before_the_board_was_opened_does_not_ring() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config())
    found.note(Delta(stale={"a": Verdict.EXPIRED}, added=(FAILED,), complete=False), known())
    found.note(Delta(stale={"a": None}), known())
    found.tick(Health())
    assert terminal.written == []


def test_alerts_are_rate_limited_and_lose_nothing() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(alert_every=3600, notify="osc777"))
    for name in "abc":
        found.note(Delta(stale={name: Verdict.EXPIRED}), known())
        found.tick(Health())
    assert terminal.written == ["\a", "\x1b]777;notify;dibs;dibs: 1 stale\x1b\\"]
    found._due = 0.0
    found.tick(Health())
    assert terminal.written[-1] == "\x1b]777;notify;dibs;dibs: 2 stale\x1b\\"


def test_one_late_holder_is_named_and_many_are_counted() -> None:
    terminal, model = Terminal(), known()
    found = alerts(terminal, Config(bell=False, notify="osc9", alert_every=0))

    def come_back(*numbers: int) -> None:
        for n in numbers:
            old = f"t{n}.f7.agent-{n}-0123456789"
            model.note(Event(1.0, "reap", f"t{n}", f"{old}.claimed", "", "ada"))
            model.note(Event(2.0, "refused", f"t{n}", old, "", f"agent-{n}", "done"))
        found.note(Delta(), model)
        found.tick(Health())

    come_back(0)
    assert terminal.written == [], "who came back before the board was opened is no news"
    come_back(1)
    line = "agent-1 came back and tried to finish the task: its claim #7 on t1 was revoked"
    assert terminal.written == [f"\x1b]9;dibs: {line}\x1b\\"]
    model.late_holders.clear()
    come_back(2, 3)
    assert terminal.written[1:] == ["\x1b]9;dibs: 2 came back\x1b\\"]


def test_lost_storage_rings_once_and_not_while_it_stays_lost() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(alert_every=0))
    for _ in range(3):
        found.tick(Health(trouble=Trouble.MISSING))
    found.tick(Health())
    found.tick(Health(trouble=Trouble.DENIED))
    assert terminal.written == ["\a", "\a"]


def test_muted_alerts_do_not_ring_later() -> None:
    terminal = Terminal()
    found = alerts(terminal, Config(), muted=True)
    found.note(Delta(stale={"a": Verdict.EXPIRED}), known())
    found.tick(Health())
    found.muted = False
    found.tick(Health())
    assert terminal.written == []


def test_the_users_command_gets_the_text_and_runs_without_a_shell(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("/bin/sh", "-c", f'printf %s "$1" > {out}.new && mv {out}.new {out}', "alert")
    found = alerts(Terminal(), Config(bell=False, alert_command=command))
    found.note(Delta(stale={"$(touch /nowhere)": Verdict.DEAD}), known())
    found.tick(Health())
    deadline = time.monotonic() + PATIENCE
    while not out.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert out.read_text() == "dibs: 1 stale"
    all_done()


def test_a_command_that_hangs_at_its_start_delays_nothing(tmp_path: Path) -> None:
    with passed_through(tmp_path) as mount:
        shutil.copy("/bin/true", mount.below / "alert")
        os.kill(mount.pid, signal.SIGSTOP)
        goes_on = threading.Timer(PATIENCE / 2, os.kill, (mount.pid, signal.SIGCONT))
        goes_on.start()
        command = (str(mount.place / "alert"),)
        found = alerts(Terminal(), Config(bell=False, alert_command=command))
        found.note(Delta(stale={"a": Verdict.DEAD}), known())
        found.tick(Health())
        assert not goes_on.finished.is_set(), "it waited until the command could begin"
        goes_on.cancel()
        os.kill(mount.pid, signal.SIGCONT)
        all_done()


def test_a_missing_command_is_tried_once() -> None:
    config = Config(bell=False, alert_every=0, alert_command=("/no/such/program",))
    found = alerts(Terminal(), config)
    found.note(Delta(stale={"a": Verdict.DEAD}), known())
    found.tick(Health())
    all_done()
    assert found._config.alert_command == ()


def all_done() -> None:
    """Wait for the background threads."""
    for thread in threading.enumerate():
        if thread.name == "dibs-background":
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_the_model_counts_stale_locks_and_stale_claims_separately(tmp_path: Path) -> None:
    board = open_directory(tmp_path / "b", create=True)
    board.add("t")
    claim = board.claim("t", owner="w", ttl=60)
    lease = board.acquire("lock", owner="w", ttl=60)
    assert claim is not None
    view = board.view()
    view.scan()
    model = BoardModel()
    holders = {name: found.holder for name, found in view.facts().items()}
    model.apply(Delta(added=tuple(view.tasks.values()), holders=holders))
    assert (model.count("claimed"), model.count("held"), model.count("stale")) == (1, 1, 0)
    model.apply(Delta(stale={lease.task.name: Verdict.EXPIRED}))
    assert (model.count("claimed"), model.count("held"), model.count("stale")) == (1, 0, 1)
    model.apply(Delta(stale={lease.task.name: None, claim.task.name: Verdict.DEAD}))
    assert (model.count("claimed"), model.count("held"), model.count("stale")) == (0, 1, 1)
    lease.release()
    view.scan()
    model.apply(Delta(removed=(lease.task,)))
    assert model.count("held") == 0
