"""Events in words, and which events pass a filter."""

from __future__ import annotations

from collections import deque

import pytest

from dibs import Event
from dibs.model.filters import Test, parse
from dibs_tui.model.event_text import KEPT, FilteredFeed, entry_of, event_text
from tests.tui import hostile
from tests.tui.board_models import NOW, SECOND, event

pytestmark = pytest.mark.fast("dibs_tui.model")

C1, C2 = "a.f4.web-3-0000000001", "a.f4a2.web-3-0000000002"


def sentence_of(happened: Event, began: float = 0.0) -> str:
    """The sentence for an event."""
    found = event_text(happened, began)
    reason = f": {found.reason}" if found.reason else ""
    return f"{found.glyph} {found.verb} {found.rest}{reason}".rstrip()


# Sentences


@pytest.mark.parametrize(
    ("happened", "sentence"),
    [
        (event("add", "a", "", "a.available", "ada@h"), "+ added by ada@h"),
        (event("add", "a", "", "a.f0p9.available", "ada@h"), "+ added by ada@h, priority 9"),
        (event("claim", "a", "a.available", f"{C1}.claimed", "web-3", "job 7"),
         "● claimed by web-3 #4: job 7"),
        (event("claim", "a", "a.free", f"{C1}.held", "web-3"), "◆ lock acquired by web-3 #4"),
        (event("resume", "a", "", f"{C1}.claimed", "web-3"), "● claimed again by web-3 #4"),
        (event("done", "a", f"{C1}.claimed", f"done/{C1}", "web-3"), "✓ done by web-3"),
        (event("fail", "a", f"{C1}.claimed", "a.f4a1.available", "web-3", "no disk"),
         "✗ failed by web-3, requeued after 1 attempt: no disk"),
        (event("fail", "a", f"{C1}.claimed", f"failed/{C2}", "web-3"),
         "✗ failed by web-3, moved to failed after 2 attempts"),
        (event("release", "a", f"{C1}.claimed", "a.f4.available", "web-3"),
         "○ released by web-3"),
        (event("release", "a", f"{C1}.held", "a.f4.free", "web-3"), "◇ lock released by web-3"),
        (event("reap", "a", f"{C1}.claimed", "a.f4a1.available", "j@h",
               "no heartbeat for 99 s, ttl 9 s"),
         "▲ reaped from web-3, requeued after 1 attempt: no heartbeat for 99 s, ttl 9 s"),
        (event("reap", "a", f"{C1}.held", "a.f4.free", "j@h", "no heartbeat for 99 s, ttl 9 s"),
         "▲ reaped from web-3, free again: no heartbeat for 99 s, ttl 9 s"),
        (event("reap", "a", "a.claimed", "a.available", "j@h", "no heartbeat for 99 s, ttl 9 s"),
         "▲ reaped from its holder, requeued: no heartbeat for 99 s, ttl 9 s"),
        (event("reap", "a", "a.f0.dibs-0000000001.claimed", "a.available", "j@h",
               "its process has exited"),
         "▲ reaped from its holder, requeued: its process has exited"),
        (event("force-release", "a", f"{C1}.claimed", "a.f4.available", "ada@h", "hung"),
         "» force-released by ada@h from web-3: hung"),
        (event("requeue", "a", f"failed/{C2}", "a.f4.available", "ada@h", "new disk"),
         "» requeued by ada@h: new disk"),
        (event("park", "a", "a.available", f"failed/{C1}", "ada@h", "later"),
         "» parked by ada@h: later"),
        (event("prioritize", "a", "a.available", "a.f0p9.available", "ada@h", "5 → 9"),
         "» priority changed by ada@h: 5 → 9"),
        (event("undo", "a", f"failed/{C1}", "a.available", "ada@h", "of park"),
         "» undone: park, by ada@h"),
        (event("forget", "a", "", "", "ada@h"), "» forgotten by ada@h, its id is free again"),
        (event("purge", "a", f"done/{C1}", "", "ada@h"),
         "» purged by ada@h, its payload was removed"),
        (event("intent", "a", f"{C1}.claimed", "a.f4.available", "ada@h", "force-release: hung"),
         "» unfinished: force-release by ada@h: it crashed, or is still running: hung"),
        (event("not-done", "a", f"{C1}.claimed", "", "ada@h", "park: it is gone"),
         "» not done: park by ada@h: it is gone"),
        (event("refused", "a", C1, "", "web-3", "done"),
         "◐ came back: web-3, claim #4 was revoked; its done was refused"),
        (event("rotated", "", ".dibs/journal/h.1.jsonl", "", "ada@h", "32 MiB were set aside"),
         "· log rotated: .dibs/journal/h.1.jsonl by ada@h: 32 MiB were set aside"),
        (event("ledger", "", "", "", "ada@h", "park: 40 done"),
         "» bulk act ended: by ada@h: park: 40 done"),
        (event("ponder", "a", "", "", "ada@h", "why"), "· ponder by ada@h: why"),
        (event("", "a"), "· unknown event by unknown"),
        (event("token", "", by="root@h", reason="added rita: reader"),
         "» token: by root@h: added rita: reader"),
        (event("hook", "", by="root@h", reason="ci: 2 failed deliveries queued"),
         "» hook: by root@h: ci: 2 failed deliveries queued"),
    ],
)  # fmt: skip
def test_each_verb_has_its_sentence(happened: Event, sentence: str) -> None:
    assert sentence_of(happened) == sentence


def test_the_last_note_of_a_claim_is_on_the_line_of_its_end() -> None:
    end = event("done", "a", f"{C1}.claimed", f"done/{C1}", "web-3")._replace(note="frame 812")
    assert sentence_of(end) == "✓ done by web-3: (last note: frame 812)"


def test_the_end_of_a_claim_shows_how_long_it_lasted_if_its_start_is_known() -> None:
    begin = event("claim", "a", "a.available", f"{C1}.claimed", "web-3", ago=50)
    end = event("done", "a", f"{C1}.claimed", f"done/{C1}", "web-3", ago=8)
    feed = FilteredFeed()
    feed.catch_up(deque([end, begin]), None, 0)
    assert sentence_of(end, feed.began(end)) == "✓ done by web-3 after 42s"
    assert feed.began(event("done", "a", "b.claimed")) == 0


@pytest.mark.parametrize("text", hostile.CASES.values(), ids=hostile.CASES.keys())
def test_no_hostile_text_gets_into_a_sentence(text: str) -> None:
    verbs = ("add", "claim", "done", "fail", "release", "reap", "force-release", "undo", "purge")
    for verb in (*verbs, text):
        found = event_text(Event(1.0, verb, text, text[:3000], text[:3000], text, text))
        for part in (found.verb, found.rest, found.reason):
            assert not hostile.forbidden(part)
            assert len(part) < 1000


@pytest.mark.parametrize(
    ("happened", "passing", "failing"),
    [
        (event("claim", "a", "a.available", f"{C1}.claimed", "Web 3", "pr 17"),
         ["owner^=Web", "state=claimed", "fence=4", "metadata~17", "kind=task", "a"],
         ["state=available", "owner=web-3", "kind=lock"]),
        (event("reap", "a", f"{C2}.claimed", f"failed/{C2}", "j@h1"),
         ["owner=web-3", "state=failed", "attempts=2", "host=h1"], ["owner=j@h1"]),
        (event("reap", "a", f"{C2}.claimed", f"failed/{C2}", "j@h1",
               "no heartbeat for 99 s, ttl 9 s, host gpu-7"),
         ["host=gpu-7", "reason~gpu-7", "reason~heartbeat", "metadata="], ["host=h1"]),
        (event("fail", "a", f"{C2}.claimed", f"failed/{C2}", "web-3", "exit 1: no disk")
         ._replace(note="frame 812 of 1200"),
         ["reason~disk", "note~812", "metadata="], ["note~disk", "reason~frame"]),
        (event("requeue", "a", f"failed/{C2}", "a.f4.available", "ada@h1"),
         ["owner=web-3", "state=available", "attempts=0"], ["owner~ada"]),
        (event("add", "room/7", "", "room=2F7.f0p9.free", "ada@h1", ago=120),
         ["owner=ada@h1", "state=free", "kind=lock", "age>1m", "age<3m", "priority=9", "room"],
         ["age>3m", "held>1s"]),
        (event("prioritize", "a", "a.available", "a.f0p7.available", "ann lee@corp@h1 pts/1"),
         ["host=h1", "owner^=ann", "owner~lee@corp", "!owner~pts"], ["host~pts"]),
        (event("add", "a", "", "a.available", "ada@h1 pts/1"), ["owner=ada@h1", "host=h1"], []),
        (event("park", "a", "a.available", "failed/a.f0.ada-h1-0123456789", "ada@h1 pts/1"),
         ["owner=ada@h1", "state=failed"], ["owner=ada-h1"]),
        (event("add", "a", "", "a.available", "the porter"), ["host="], ["host=the"]),
        (event("refused", "a", C1, "", "web-3", "done"), ["owner=web-3", "host="], []),
        (event("purge", "a", f"done/{C1}", "", "ada@h1"),
         ["state=gone", "fence=4"], ["state=done"]),
        (event("intent", "a", f"{C1}.claimed", "a.f4.available", "ada@h1", "park: later"),
         ["state=claimed", "owner=web-3", "host=h1"], ["state=available"]),
    ],
)  # fmt: skip
def test_filter_terms_apply_to_events_too(
    happened: Event, passing: list[str], failing: list[str]
) -> None:
    row = entry_of(happened, NOW.fs / SECOND)
    assert [term for term in passing if not parse([term])(row)] == []
    assert [term for term in failing if parse([term])(row)] == []


class Feed:
    """A growing journal, and a filtered feed of it."""

    def __init__(self) -> None:
        self.feed: deque[Event] = deque(maxlen=KEPT)
        self.filtered = FilteredFeed()
        self._number = 0

    def happen(self, times: int = 1) -> None:
        for _ in range(times):
            self.feed.appendleft(event("claim", f"t{self._number}", by=f"w{self._number % 2}"))
            self._number += 1

    def ids(self, test: Test | None = None, *, retest: bool = False) -> list[str]:
        self.filtered.catch_up(self.feed, test, 0, retest=retest)
        return [happened.id for _, happened in self.filtered.events]


EVEN = parse(["owner=w0"])


def test_the_newest_event_is_first_and_each_event_is_added_once() -> None:
    journal = Feed()
    assert journal.ids() == []
    journal.happen(2)
    assert journal.ids() == ["t1", "t0"]
    assert journal.ids() == ["t1", "t0"]
    journal.happen()
    assert journal.ids() == ["t2", "t1", "t0"]


def test_an_event_keeps_its_key_through_filters_and_new_events() -> None:
    journal = Feed()
    journal.happen(5)
    journal.ids()
    before = {happened.id: key for key, happened in journal.filtered.events}
    journal.happen(2)
    assert journal.ids(EVEN) == ["t6", "t4", "t2", "t0"]
    keys = {happened.id: key for key, happened in journal.filtered.events}
    assert len({*keys.values()}) == 4
    assert journal.ids(EVEN, retest=True) == ["t6", "t4", "t2", "t0"]
    assert journal.ids() == ["t6", "t5", "t4", "t3", "t2", "t1", "t0"]
    keys |= {happened.id: key for key, happened in journal.filtered.events}
    assert {ident: keys[ident] for ident in before} == before


def test_events_that_the_feed_has_dropped_are_not_shown_any_more() -> None:
    journal = Feed()
    journal.happen(10)
    journal.ids(EVEN)
    journal.happen(KEPT - 4)
    assert len(journal.ids(EVEN)) == KEPT // 2
    journal.happen(2 * KEPT)
    assert len(journal.ids()) == KEPT
    assert journal.ids()[0] == journal.feed[0].id
