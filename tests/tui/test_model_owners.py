"""Who holds how much, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from dibs.filters import parse
from dibs_tui.model.owners import Holder, held, holders, spread, terms
from tests.tui import hostile
from tests.tui.listed import NOW, SECOND, claim, model_of, still


def by_name(found: list[Holder]) -> dict[str, Holder]:
    return {holder.name: holder for holder in found}


def test_claims_are_gathered_by_owner_and_by_host() -> None:
    model = still()
    first = claim(model, "a", "web 3", "h1", beats=(90, 60, 30, 2))
    second = claim(model, "b", "web 3", "h2", beats=(40, 5))
    claim(model, "c", "ada", "h1", beats=(7,))
    owners, hosts = holders(held(model))
    assert [holder.name for holder in owners] == ["web 3", "ada"]
    web = by_name(owners)["web 3"]
    assert web.claims == (first, second)
    assert web.others == ("h1", "h2")
    assert web.oldest == NOW.fs - 90 * SECOND
    assert web.beat == NOW.fs - 2 * SECOND
    assert by_name(hosts)["h1"].others == ("ada", "web 3")
    assert len(by_name(hosts)["h2"].claims) == 1


def test_the_host_of_a_plain_claim_is_what_its_lock_says(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    claims = {
        "a.claimed": "1763490000 web-3",
        "b.claimed-by-ada": "1763490000 web-4",
        "c.claimed-by-sh": "1763490000",
        "d.claimed": "",
        "e.claimed-by-sh": "pid=7",
    }
    for name, lock in claims.items():
        (tmp_path / "board" / name).touch()
        (tmp_path / "board" / f"{name[0]}.lock").write_text(lock)
    (tmp_path / "board" / "f.claimed-by-sh").touch()
    model = model_of(board)
    found = {claim.facts.task.id: (claim.owner, claim.host) for claim in held(model)}
    assert found == {
        "a": ("web-3", "web-3"),
        "b": ("ada", "web-4"),
        "c": ("sh", ""),
        "d": ("", ""),
        "e": ("sh", ""),
        "f": ("sh", ""),
    }
    shown = [task for task in model.tasks.values() if parse(["host=web-4"])(model.entry(task))]
    assert [task.id for task in shown] == ["b"]


def test_the_cadence_is_the_median_over_the_claims_that_have_told_one() -> None:
    model = still()
    claim(model, "a", "w", beats=(31, 21, 11, 1))
    claim(model, "b", "w", beats=(21, 16, 11, 6, 1))
    claim(model, "c", "w", beats=(61, 41, 21, 1))
    claim(model, "new", "w", beats=(3, 2.5))
    (owner,), _ = holders(held(model))
    assert owner.cadence == 10 * SECOND
    assert spread(model, owner) == 0
    claim(model, "d", "v", beats=(9,))
    assert by_name(holders(held(model))[0])["v"].cadence == 0


def test_uneven_beats_have_a_spread() -> None:
    model = still()
    claim(model, "a", "w", beats=(60, 50, 35, 30, 12, 1))
    (owner,), _ = holders(held(model))
    assert 1 < spread(model, owner) / SECOND < 10


def test_whoever_is_silent_stands_first_then_whoever_is_late_then_who_holds_most() -> None:
    model = still()
    for n in range(3):
        claim(model, f"m{n}", "many")
    claim(model, "l", "late", beats=(55, 50, 45, 40))
    claim(model, "s", "silent", beats=(500, 480, 460))
    for n in range(2):
        claim(model, f"f{n}", "few")
    owners, _ = holders(held(model))
    found = [(holder.name, holder.state, holder.late, holder.stale) for holder in owners]
    assert found == [
        ("silent", "stale", 0, 1),
        ("late", "late", 1, 0),
        ("many", "claimed", 0, 0),
        ("few", "claimed", 0, 0),
    ]


def test_a_holder_stands_in_the_panel_that_has_all_it_holds() -> None:
    model = still()
    claim(model, "a", "well")
    claim(model, "b", "gone", beats=(500,))
    claim(model, "c", "torn", beats=(500,))
    claim(model, "d", "torn")
    views = {holder.name: holder.view for holder in holders(held(model))[0]}
    assert views == {"well": "claimed", "gone": "stale", "torn": "all"}


def test_a_filter_holds_for_the_claims_that_are_counted() -> None:
    model = still()
    claim(model, "a1", "w", "h1")
    claim(model, "a2", "w", "h2")
    owners, hosts = holders(held(model, parse(["host=h1"])))
    assert [len(holder.claims) for holder in owners] == [1]
    assert [holder.name for holder in hosts] == ["h1"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("web-3", "host=web-3"),
        ("", "host="),
        ("a=b~c<d", "host=a=b~c<d"),
        ("日本", "host=日本"),
        ("web 3", "host^=web host~3"),
        (" web  of\tlies ", "host~web host~of host~lies"),
        ("safe\u202egnp", "host^=safe host~gnp"),
        ("\x1b[31m", "host~[31m"),
        (" \u200b\x1b", ""),
    ],
)
def test_the_filter_to_a_holder_finds_it_and_can_be_typed(value: str, expected: str) -> None:
    found = terms("host", value)
    assert found == expected
    model = still()
    claim(model, "a", "w", value)
    claim(model, "b", "w", "zzz")
    if found:
        _, hosts = holders(held(model, parse(found.split())))
        assert [holder.name for holder in hosts] == [value]


@pytest.mark.parametrize("text", hostile.CASES.values(), ids=hostile.CASES.keys())
def test_the_filter_to_a_hostile_name_finds_it_and_is_harmless(text: str) -> None:
    owner = text[:256]
    found = terms("owner", owner)
    assert not hostile.forbidden(found)
    model = still()
    claim(model, "a", owner)
    if found:
        assert len(holders(held(model, parse(found.split())))[0]) == 1
    else:
        assert not set(owner) & set("abcdefghijklmnopqrstuvwxyz")
