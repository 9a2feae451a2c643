"""What a watch reports, from deltas alone: each thing once."""

from __future__ import annotations

import json
import time

import pytest

from dibs.cli.say import Voice
from dibs.cli.watch import report
from dibs.model.delta import Delta
from dibs.model.events import Event
from dibs.model.evidence import Verdict
from dibs.model.filters import parse
from dibs.model.health import Health, Trouble
from dibs.model.holder import Holder
from dibs.model.names import read_any
from dibs.model.rates import Rates
from dibs.model.sample import SECOND, Sample
from dibs.model.task import Task
from dibs.model.usual import ENOUGH, Durations
from dibs.model.waiters import Waiter
from dibs.model.watching import GRACE, Observer, Occurrence
from tests.core.test_usual import lives

pytestmark = pytest.mark.fast("dibs.model")

STEM = "task-1.f1.web-0123456789"
CLAIM = f"{STEM}.claimed"
FRESH = Health(fresh=1.0)


class Scene:
    """An observer and the time of its board."""

    def __init__(self, *terms: str, durations: Durations | None = None) -> None:
        self.at = 1000.0
        self.observer = Observer(
            durations or Durations(), parse(terms) if terms else None, boottime=lambda: self._ns()
        )

    def _ns(self) -> int:
        return int(self.at * SECOND)

    def note(self, **fields: object) -> list[Occurrence]:
        """Apply a delta of now."""
        now = Sample(self._ns(), self._ns())
        return self.observer.note(Delta(now=now, **fields), self.at)  # type: ignore[arg-type]

    def begin(self, *names: str) -> None:
        """The first picture of a board."""
        assert not self.note(added=tuple(map(task, names)), complete=False)
        assert not self.note(rates=Rates())

    def tick(self, health: Health | None = None) -> list[Occurrence]:
        health = health or FRESH._replace(fresh=self.at)
        return self.observer.tick(health, self.at)

    def holder(
        self, name: str = CLAIM, *, ttl: float = 60.0, held: float = 0.0
    ) -> dict[str, Holder]:
        since = int((self.at - held) * SECOND)
        return {name: Holder(task(name), self._ns(), ttl, since, "web", "web-host")}


def task(name: str) -> Task:
    found = read_any(name)
    assert found is not None, name
    return found


def words(found: list[Occurrence]) -> list[str]:
    return [one.what for one in found]


def event(verb: str, src: str, dst: str, ident: str = "task-1", reason: str = "") -> Event:
    return Event(1000.0, verb, ident, src, dst, "web", reason)


def test_what_happened_before_the_watch_is_no_news() -> None:
    scene = Scene()
    added = (task("task-1.available"),)
    assert not scene.note(added=added, complete=False)
    assert not scene.note(rates=Rates(), events=(event("add", "", "task-1.available"),))
    scene.at += 10 * GRACE
    assert not scene.tick()


def test_a_logged_transition_is_reported_once_with_its_names() -> None:
    scene = Scene()
    scene.begin("task-1.available")
    claimed = event("claim", "task-1.available", CLAIM)
    change = {"added": (task(CLAIM),), "removed": (task("task-1.available"),)}
    (found,) = scene.note(**change, holders=scene.holder(), events=(claimed,))
    assert (found.what, found.id, found.event) == ("claim", "task-1", claimed)
    assert found.fields()["host"] == "web-host"
    scene.at += 10 * GRACE
    assert not scene.tick()


@pytest.mark.parametrize("log_first", [True, False])
def test_the_log_and_the_names_may_come_in_any_order(log_first: bool) -> None:
    scene = Scene()
    scene.begin("task-1.available")
    names = {"added": (task(CLAIM),), "removed": (task("task-1.available"),)}
    log = {"events": (event("claim", "task-1.available", CLAIM),)}
    found = scene.note(**(log if log_first else names)) + scene.note(
        **(names if log_first else log)
    )
    scene.at += 2 * GRACE
    assert words(found + scene.tick()) == ["claim"]


def test_what_a_shell_moved_is_reported_without_the_log() -> None:
    scene = Scene()
    scene.begin("task-1.available")
    names = (task("task-1.claimed-by-sh"),), (task("task-1.available"),)
    assert not scene.note(added=names[0], removed=names[1])
    assert not scene.tick()
    scene.at += GRACE
    (found,) = scene.tick()
    assert found.what == "moved"
    assert found.event is not None
    assert (found.event.src, found.event.dst) == ("task-1.available", "task-1.claimed-by-sh")
    late = event("claim", "task-1.available", "task-1.claimed-by-sh")
    assert not scene.note(events=(late,)), "the log was late"
    assert not scene.tick()


def test_a_stale_claim_is_reported_once_and_its_return_too() -> None:
    scene = Scene()
    scene.begin(CLAIM)
    scene.note(holders=scene.holder())
    scene.at += 90
    assert words(scene.note(stale={CLAIM: Verdict.UNKNOWN})) == ["stale"]
    assert not scene.note(stale={CLAIM: Verdict.EXPIRED})
    (back,) = scene.note(stale={CLAIM: None})
    assert (back.what, back.id) == ("back", "task-1")
    assert words(scene.note(stale={CLAIM: Verdict.EXPIRED})) == ["stale"]


def test_a_claim_that_was_stale_before_the_watch_is_reported() -> None:
    scene = Scene()
    assert words(scene.note(added=(task(CLAIM),), stale={CLAIM: Verdict.DEAD})) == ["stale"]


def test_an_overdue_heartbeat_is_reported_once_until_it_comes() -> None:
    scene = Scene()
    scene.begin(CLAIM)
    for _ in range(5):
        scene.note(holders=scene.holder())
        scene.at += 10
        assert not scene.tick()
    scene.at += 15
    (late,) = scene.tick()
    assert late.what == "late"
    assert "usually every 10s" in late.text
    assert not scene.tick()
    scene.note(holders=scene.holder())
    assert not scene.tick()
    scene.at += 100
    assert words(scene.tick()) == ["late"]


def test_an_unusually_long_claim_is_reported_once() -> None:
    durations = Durations()
    for one in lives([120.0] * ENOUGH, "task"):
        durations.note(one)
    scene = Scene(durations=durations)
    scene.begin(CLAIM)
    scene.note(holders=scene.holder(ttl=3600, held=359))
    assert not scene.tick()
    scene.at += 2
    (found,) = scene.tick()
    assert (found.what, found.text) == ("long", "running 6m, usually 2m")
    assert not scene.tick()


def test_a_holder_that_comes_back_to_a_lost_claim_is_reported_once() -> None:
    scene = Scene()
    scene.begin("task-1.f1.available")
    refused = event("refused", STEM, "", reason="done")
    (found,) = scene.note(events=(refused,), late_beats=(STEM,))
    assert found.what == "back"
    assert "before its done" in found.text
    assert not scene.note(events=(refused,), late_beats=(STEM,))
    assert words(scene.note(late_beats=("other.f1.web-0123456789",))) == ["back"]


def test_trouble_with_the_storage_and_its_end_are_reported_once() -> None:
    scene = Scene("owner=no-one")
    scene.begin()
    gone = Health(fresh=1.0, trouble=Trouble.MISSING, cause="/b: gone")
    (trouble,) = scene.tick(gone)
    assert (trouble.what, trouble.text) == ("trouble", "storage: missing: /b: gone")
    assert not scene.tick(gone)
    assert words(scene.tick()) == ["recovered"]
    assert not scene.tick()
    hanging = FRESH._replace(fresh=scene.at, busy=scene.at)
    scene.at += 60
    assert not scene.tick(hanging) + scene.tick(hanging)
    assert words(scene.tick(hanging)) == ["trouble"]
    assert not scene.tick(hanging)


def test_a_watch_that_was_stopped_itself_reports_nothing_late() -> None:
    scene = Scene()
    scene.begin(CLAIM)
    for _ in range(5):
        scene.note(holders=scene.holder())
        scene.at += 10
        assert not scene.tick()
    read = FRESH._replace(fresh=scene.at)
    scene.at += 600
    assert not scene.tick(read), "the process was stopped, and has not read the board since"
    scene.note(holders=scene.holder())
    assert not scene.tick()


def test_another_board_at_the_same_place_is_no_news() -> None:
    scene = Scene()
    scene.begin("task-1.available")
    scene.note(
        added=(task("other.available"),), removed=(task("task-1.available"),), complete=False
    )
    scene.note(rates=Rates(), events=(event("add", "", "other.available", "other"),))
    scene.at += 10 * GRACE
    assert not scene.tick()


def test_a_filter_sees_the_task_before_and_after_and_its_holder() -> None:
    end = event("done", CLAIM, f"done/{STEM}")
    names = {"added": (task(f"done/{STEM}"),), "removed": (task(CLAIM),)}
    for term, fits in (
        ("host=web-host", True),
        ("state=done", True),
        ("state=claimed", True),
        ("id=other", False),
        ("host=other", False),
    ):
        scene = Scene(term)
        scene.begin(CLAIM)
        scene.note(holders=scene.holder())
        assert bool(scene.note(**names, events=(end,))) is fits, term


def test_an_event_about_the_complete_board_passes_every_filter() -> None:
    scene = Scene("id=other")
    scene.begin()
    note = Event(1000.0, "pause", "", "", "", "ann", "disk is full")
    (found,) = scene.note(events=(note,))
    assert (found.what, found.id, found.text) == ("pause", "", "ann  disk is full")
    ledger = Event(1000.0, "ledger", "", "", "", "ann", "park: 2 done")
    assert not scene.note(events=(ledger,)), "each of its acts is reported"


def test_a_worker_that_breaks_is_reported_once_until_it_has_done_a_task() -> None:
    scene = Scene("host=web-3")
    scene.begin()
    broken = Waiter("m-0123456789", "mailer", "web-3", "broken")
    other = Waiter("n-0123456789", "n", "web-4", "broken")
    (found,) = scene.note(waiters=(broken, other))
    assert (found.what, found.text) == (
        "broken",
        "mailer on web-3 waits after many failures in a row",
    )
    assert found.fields()["owner"] == "mailer"
    assert not scene.note(waiters=())
    assert not scene.note(waiters=(broken._replace(name="m-0123456780"),))
    done = Event(scene.at, "done", "task-9", f"{STEM}.claimed", f"done/{STEM}", "mailer")
    scene.note(events=(done,))
    assert [one.what for one in scene.note(waiters=(broken,))] == ["broken"]


def test_trouble_before_the_first_look_has_the_time_of_day(
    capsys: pytest.CaptureFixture[str],
) -> None:
    observer, before = Observer(Durations(), boottime=time.monotonic_ns), time.time()
    found = observer.tick(Health(trouble=Trouble.MISSING), 1.0)
    report(Voice(json=True), found, None)
    assert json.loads(capsys.readouterr().out)["at"] >= round(before, 3)
