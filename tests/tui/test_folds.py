"""Many tasks with one cause are one line, which opens and closes in place."""

from __future__ import annotations

import pytest

from dibs import Verdict
from dibs.model.delta import Delta
from dibs.model.filters import parse
from dibs_tui.model.board import BoardModel, Listing
from dibs_tui.model.folds import is_head
from tests.tui.board_models import claim, event, put, still, task_of

pytestmark = pytest.mark.fast("dibs_tui.model")


def stopped(model: BoardModel, host: str, count: int, first: int = 0) -> list[str]:
    """Stale claims on a host."""
    return [
        claim(model, f"{host}-t{n}", f"w{n % 2}", host, beats=(900.0, 500.0 + n))
        for n in range(first, first + count)
    ]


def opened(model: BoardModel, panel: str = "stale", sort: str = "past") -> Listing:
    return model.listing(panel, sort, opened=set())


def lines(listing: Listing) -> list[str]:
    return [task.id for task in listing.sorted_tasks]


def test_claims_of_one_host_are_one_line_with_their_exact_names() -> None:
    model = still()
    names = stopped(model, "web-3", 4)
    claim(model, "alone", "x", "web-9", beats=(800.0,))
    listing = opened(model)
    assert lines(listing) == ["alone", "host/web-3"]
    assert listing.folds is not None
    (fold,) = listing.folds.folds.values()
    assert set(fold.names) == set(names)
    line = model.fold_line(fold, is_open=False)
    assert (line.entry.owner, line.entry.host, line.verdict) == ("4 claims", "web-3", "expired")
    assert line.id.startswith("web-3 stopped ")
    assert "2 owners" in line.entry.note
    assert listing.folds.hidden == 3


def test_an_open_fold_shows_its_members_right_below_it_in_every_order() -> None:
    model = still()
    stopped(model, "web-3", 12)
    for n, ago in enumerate((400.0, 700.0, 520.5)):
        claim(model, f"alone-{n}", f"x{n}", f"h{n}", beats=(ago,))
    for sort in ("past", "id", "owner", "fence", "held"):
        for descending in (False, True):
            listing = model.listing("stale", sort, None, descending, set())
            assert listing.folds is not None
            (fold,) = listing.folds.folds.values()
            model.turn_fold(listing, fold)
            found = [task.name for task in listing.sorted_tasks]
            at = found.index(fold.head.name)
            assert set(found[at + 1 : at + 13]) == set(fold.names), sort
            if sort == "id":
                ids = [task.id for task in listing.sorted_tasks][at + 1 : at + 13]
                wanted = [f"web-3-t{n}" for n in range(12)]
                assert ids == (wanted[::-1] if descending else wanted), "2 comes before 10"
            model.turn_fold(listing, fold)
            assert len(lines(listing)) == 4
            model.close(listing)


def test_failures_that_differ_in_numbers_and_addresses_are_one_line() -> None:
    model = still()
    reasons = [
        "exit 1: POST https://api.example.com/v1/charges/ch_{}: refused by 10.0.3.{}:5432",
        "KeyError: 'vat' at 0x7f0{}ab",
        "exit 2: no route to 2001:db8::{:x}",
        "exit 7: run {:08x}-1111-4222-8333-444455556666 lost after {} s",
    ]
    for n in range(12):
        name = f"failed/t{n}.f1a1.w-{n + 1:010X}"
        put(model, name)
        reason = reasons[n % 4].format(n, n)
        model.note(event("fail", f"t{n}", dst=name, reason=reason))
    listing = opened(model, "failed", "id")
    assert listing.folds is not None
    titles = {fold.title for fold in listing.folds.folds.values()}
    assert titles == {
        "3 \u00d7 POST https://api.example.com/v1/charges/ch_#: refused by #",
        "3 \u00d7 KeyError: 'vat' at #",
        "3 \u00d7 no route to #",
        "3 \u00d7 run # lost after # s",
    }
    assert all(len(fold.names) == 3 for fold in listing.folds.folds.values())


def test_a_sign_for_numbers_in_a_reason_itself_does_no_harm() -> None:
    model = still()
    for n, reason in enumerate(("job # failed", "job 5 failed", "job # failed", "#", "5", "7")):
        name = f"failed/t{n}.f1a1.w-{n + 1:010X}"
        put(model, name)
        model.note(event("fail", f"t{n}", dst=name, reason=reason))
    listing = opened(model, "failed", "id")
    assert listing.folds is not None
    assert {len(fold.names) for fold in listing.folds.folds.values()} == {3}


def test_a_fold_follows_what_becomes_stale_and_what_ends() -> None:
    model = still()
    listing = opened(model)
    names = stopped(model, "web-3", 2)
    model.refold(listing)
    assert lines(listing) == ["web-3-t1", "web-3-t0"]
    names += stopped(model, "web-3", 3, first=2)
    assert len(lines(listing)) == 5, "nothing is hidden before the list is folded again"
    model.refold(listing)
    assert lines(listing) == ["host/web-3"]
    assert listing.folds is not None
    (fold,) = listing.folds.folds.values()
    model.turn_fold(listing, fold)
    more = stopped(model, "web-3", 1, first=9)
    model.refold(listing)
    assert lines(listing)[:2] == ["host/web-3", "web-3-t9"], "the first one moves all of them"
    assert len(lines(listing)) == 7
    model.apply(Delta(removed=tuple(map(task_of, (*names[:3], *more)))))
    model.refold(listing)
    assert lines(listing) == ["web-3-t4", "web-3-t3"]
    assert not any(is_head(task.name) for task in listing.sorted_tasks)


def test_a_host_with_claims_that_beat_has_not_stopped() -> None:
    model = still()
    stopped(model, "web-3", 3)
    claim(model, "well", "w9", "web-3", beats=(5.0,))
    listing = opened(model)
    assert listing.folds is not None
    (fold,) = listing.folds.folds.values()
    assert fold.title.startswith("web-3 stale since ")
    assert "1 other still beats" in fold.note


def test_different_evidence_is_named() -> None:
    model = still()
    names = stopped(model, "web-3", 4)
    model.apply(Delta(stale={names[0]: Verdict.DEAD}))
    listing = opened(model)
    assert listing.folds is not None
    (fold,) = listing.folds.folds.values()
    assert fold.verdict == "expired"
    assert "1 DEAD" in fold.note


def test_failures_with_one_last_line_are_one_line_and_hostile_text_stays_clean() -> None:
    model = still()
    reason = "connection \x1b[31mrefused\u202e"
    for n in range(4):
        name = f"failed/t{n}.f1a1.w-{n:010X}"
        put(model, name)
        model.note(event("fail", f"t{n}", f"t{n}.f1.w-{n:010X}.claimed", name, "w@h", reason))
    put(model, "failed/other.f1a1.w-00000000FF")
    listing = opened(model, "failed", "ended")
    assert listing.folds is not None
    (fold,) = listing.folds.folds.values()
    assert len(fold.names) == 4
    assert fold.title.startswith("4 \u00d7 connection ")
    assert fold.title.isprintable()
    assert len(lines(listing)) == 2
    model.apply(Delta(removed=tuple(map(task_of, fold.names[:2]))))
    model.refold(listing)
    assert len(lines(listing)) == 3


def test_only_what_matches_the_filter_is_folded() -> None:
    model = still()
    stopped(model, "web-3", 6)
    listing = model.listing("stale", "past", parse(["owner=w0"]), opened=set())
    assert listing.folds is not None
    (fold,) = listing.folds.folds.values()
    assert len(fold.names) == 3
    assert all(model.holders[name].owner == "w0" for name in fold.names)


def test_a_fold_that_the_filter_hides_is_looked_for_without_harm() -> None:
    model = still()
    stopped(model, "web-3", 4)
    claim(model, "alone", "x", "web-9", beats=(800.0,))
    for sort in ("past", "owner", "id", "note"):
        known = opened(model, sort=sort).folds
        assert known is not None
        (fold,) = known.folds.values()
        found = model.listing("stale", sort, parse(["id=alone"]), opened=set())
        assert found.sorted_tasks.index(fold.head) is None


def test_a_held_list_moves_only_for_the_operator() -> None:
    model = still()
    stopped(model, "web-3", 3)
    listing = opened(model)
    assert listing.folds is not None
    listing.sorted_tasks.hold("cursor")
    (fold,) = listing.folds.folds.values()
    model.turn_fold(listing, fold)
    assert len(lines(listing)) == 4
    model.turn_fold(listing, fold)
    assert lines(listing) == ["host/web-3"]
