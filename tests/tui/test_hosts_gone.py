"""A host that vanished is said after its claims were reaped, also by a dashboard opened later."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Event, Waiter
from dibs.files import tracker
from dibs.model.delta import Delta
from dibs.model.rates import Rates
from dibs.model.reasons import expired
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.problem_lines import lines_of
from dibs_tui.model.problems import problems
from dibs_tui.model.wall import wall_lines
from dibs_tui.settings.config import Config
from dibs_tui.text.ages import clock
from tests.tui.board_models import NOW, SECOND, claim, event, still
from tests.tui.live import drive, text_of, until


def reaps(host: str, claims: int, *, ago: float = 60, owners: int = 4) -> tuple[Event, ...]:
    """The log of the claims of a host that were reaped 30 s after their last heartbeats."""
    return tuple(
        event(
            "reap",
            f"{host}-t{n}",
            f"{host}-t{n}.f1.w{n % owners}-{n:010X}.claimed",
            f"{host}-t{n}.f1a1.available",
            "janitor@h",
            expired(30, 30, host),
            ago=ago,
        )
        for n in range(claims)
    )


def said(model: BoardModel) -> list[str]:
    return [found.sentence for found in model.gone()]


AT = clock(NOW.fs / SECOND - 90)[:5]


@pytest.mark.parametrize("later", [False, True])
def test_a_host_is_gone_if_its_claims_were_reaped_and_it_has_no_other(later: bool) -> None:
    model = still()
    if later:  # the events that are reported at the opening are part of what the search finds
        model.apply(Delta(rates=Rates(), events=reaps("gpu-7", 40)[30:], reasons_read=False))
        model.apply(Delta(past=reaps("gpu-7", 40), reasons_read=True))
    else:
        model.apply(Delta(events=reaps("gpu-7", 40)))
    sentence = f"gpu-7 gone since {AT} · 4 workers, 40 claims reaped"
    assert said(model) == [sentence]
    (line,) = lines_of(model, problems(model, Config()))
    assert (line.problem.id, line.word, line.since) == ("gpu-7", "gone", 90)
    assert line.detail == "4 workers, 40 claims reaped"
    assert [one.name for one in wall_lines(model, Config())] == ["gpu-7"]
    model.hosts_gone.see(model.gone())
    assert said(model) == []
    assert problems(model, Config()) == []
    model.apply(Delta(events=reaps("gpu-7", 3, ago=10)))
    assert said(model)[0].endswith("3 workers, 3 claims reaped"), "it was lost again"


@pytest.mark.parametrize("newest_first", [False, True])
def test_only_the_last_of_two_losses_of_a_host_counts(newest_first: bool) -> None:
    losses = [*reaps("gpu-7", 40, ago=900), *reaps("gpu-7", 40)]
    model = still()
    model.apply(Delta(past=tuple(losses[::-1] if newest_first else losses), reasons_read=True))
    assert said(model) == [f"gpu-7 gone since {AT} · 4 workers, 40 claims reaped"]


def test_a_host_that_works_again_is_not_gone() -> None:
    model = still()
    model.apply(Delta(events=reaps("gpu-7", 40)))
    claim(model, "new", "w1", "gpu-7", beats=(5.0,))
    assert said(model) == []
    model.apply(Delta(removed=tuple(model.tasks.values())))
    assert said(model) == [], "it was seen alive since"
    model.apply(Delta(events=reaps("web-1", 40)))
    assert len(said(model)) == 1
    model.apply(Delta(waiters=(Waiter("w-0000000001", "w", "web-1"),)))
    model.apply(Delta(waiters=()))
    assert said(model) == []


def test_single_claims_operators_and_old_reaps_say_nothing() -> None:
    model = still()
    few, old = reaps("web-1", 2), reaps("web-2", 9, ago=1900)
    own = tuple(e._replace(reason=f"by an operator: {e.reason}") for e in reaps("web-3", 9))
    dead = tuple(e._replace(reason="its process has exited") for e in reaps("web-4", 9))
    model.apply(Delta(events=(*old, *few, *own, *dead)))
    assert said(model) == []


def test_many_hosts_that_are_gone_are_one_line() -> None:
    model = still()
    for n in range(9):
        model.apply(Delta(events=reaps(f"web-{n}", 10, ago=60 - n)))
    (line,) = said(model)
    assert line.startswith("9 hosts gone since ")
    assert line.endswith("36 workers, 90 claims reaped: web-8, web-7, web-6 and 6 more")
    model.hosts_gone.see(model.gone())
    assert said(model) == []


def test_a_hostile_host_gets_no_further_than_its_line() -> None:
    model = still()
    for host in ("a b", "\x1b[31mred", "x;y", ""):
        reason = expired(30, 30, host)
        model.apply(Delta(events=tuple(e._replace(reason=reason) for e in reaps("h", 3))))
    assert all("\x1b" not in line for line in said(model))
    for n in range(3000):
        model.apply(Delta(events=reaps(f"h{n}", 1)))
    assert len(model.hosts_gone._lost) <= 1000


def test_a_dashboard_opened_after_self_healing_says_which_host_is_gone_until_esc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker, "_REPORTED", 1)
    lost = dibs.open(tmp_path, host="gpu-7")
    for n in range(4):
        lost.add(f"t{n}")
        assert lost.claim(owner=f"w{n % 2}", ttl=1) is not None
    here = dibs.open(tmp_path)
    while here.snapshot(ended=False).holders:
        here.reap()
        time.sleep(0.05)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "2 workers, 4 claims reaped" in text_of(app))
        assert "gpu-7 gone since" in text_of(app)
        await pilot.press("8")
        await until(pilot, lambda: "gone" in text_of(app) and "Esc hides" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "claims reaped" not in text_of(app))

    drive(tmp_path, steps)
