"""Who holds how much, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from dibs import Waiter
from dibs.files.engine import open_directory
from dibs.model.delta import Delta
from dibs.model.filters import parse
from dibs_tui.model.owners import OwnerGroup, groups, held, matching, spread, terms
from tests.tui import hostile
from tests.tui.board_models import NOW, SECOND, claim, event, model_of, still

pytestmark = pytest.mark.fast("dibs_tui.model")


def by_name(found: list[OwnerGroup]) -> dict[str, OwnerGroup]:
    return {holder.name: holder for holder in found}


def test_claims_are_gathered_by_owner_and_by_host() -> None:
    model = still()
    first = claim(model, "a", "web 3", "h1", beats=(90, 60, 30, 2))
    second = claim(model, "b", "web 3", "h2", beats=(40, 5))
    claim(model, "c", "ada", "h1", beats=(7,))
    owners, hosts = groups(held(model))
    assert [holder.name for holder in owners] == ["web 3", "ada"]
    web = by_name(owners)["web 3"]
    assert web.claims == (first, second)
    assert web.others == ("h1", "h2")
    assert web.oldest == NOW.fs - 90 * SECOND
    assert web.beat == NOW.fs - 2 * SECOND
    assert by_name(hosts)["h1"].others == ("ada", "web 3")
    assert len(by_name(hosts)["h2"].claims) == 1


def test_the_host_of_a_shell_claim_comes_from_its_lock_file(tmp_path: Path) -> None:
    board = open_directory(tmp_path / "board", create=True)
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
    found = {claim.holder.task.id: (claim.owner, claim.host) for claim in held(model)}
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


def test_the_cadence_is_the_median_of_the_claims_with_a_known_one() -> None:
    model = still()
    claim(model, "a", "w", beats=(31, 21, 11, 1))
    claim(model, "b", "w", beats=(21, 16, 11, 6, 1))
    claim(model, "c", "w", beats=(61, 41, 21, 1))
    claim(model, "new", "w", beats=(3, 2.5))
    (owner,), _ = groups(held(model))
    assert owner.cadence == 10 * SECOND
    assert spread(model, owner) == 0
    claim(model, "d", "v", beats=(9,))
    assert by_name(groups(held(model))[0])["v"].cadence == 0


def test_uneven_beats_have_a_spread() -> None:
    model = still()
    claim(model, "a", "w", beats=(60, 50, 35, 30, 12, 1))
    (owner,), _ = groups(held(model))
    assert 1 < spread(model, owner) / SECOND < 10


def test_stale_holders_come_first_then_late_ones_then_those_with_most_claims() -> None:
    model = still()
    for n in range(3):
        claim(model, f"m{n}", "many")
    claim(model, "l", "late", beats=(55, 50, 45, 40))
    claim(model, "s", "stalled", beats=(500, 480, 460))
    for n in range(2):
        claim(model, f"f{n}", "few")
    owners, _ = groups(held(model))
    found = [(holder.name, holder.state, holder.late, holder.stale) for holder in owners]
    assert found == [
        ("stalled", "stale", 0, 1),
        ("late", "late", 1, 0),
        ("many", "claimed", 0, 0),
        ("few", "claimed", 0, 0),
    ]


def test_a_holder_is_listed_in_the_panel_with_all_its_claims() -> None:
    model = still()
    claim(model, "a", "well")
    claim(model, "b", "gone", beats=(500,))
    claim(model, "c", "torn", beats=(500,))
    claim(model, "d", "torn")
    views = {holder.name: holder.view for holder in groups(held(model))[0]}
    assert views == {"well": "claimed", "gone": "stale", "torn": "all"}


def test_workers_that_wait_are_gathered_by_owner() -> None:
    model = still()
    claim(model, "a", "busy")
    waiting = [
        Waiter("web-0000000001", "web", "h1"),
        Waiter("web-0000000002", "web", "h2"),
        Waiter("busy-0000000003", "busy", "h1", "paused"),
        Waiter("bad-0000000004", "bad", "h3", "broken"),
    ]
    owners, hosts = groups(held(model), waiting, {"web": (7, 2), "gone": (1, 1)})
    assert [owner.name for owner in owners] == ["bad", "busy", "web"]
    found = by_name(owners)
    assert [found[name].wait_text for name in ("bad", "busy", "web")] == [
        "1 broken",
        "1 paused",
        "2 idle",
    ]
    assert (found["web"].claims, found["web"].others) == ((), ("h1", "h2"))
    assert (found["web"].done, found["web"].failed) == (7, 2)
    assert [found[name].state for name in ("bad", "busy", "web")] == ["failed", "claimed", "free"]
    assert [host.name for host in hosts] == ["h"]
    idle = matching(waiting, model.now, parse(["state=idle", "host=h2"]))
    assert [waiter.name for waiter in idle] == ["web-0000000002"]


def test_ended_claims_of_the_last_hour_are_counted_by_owner() -> None:
    model = still()
    for ago, verb, owner in (
        (5, "done", "web"),
        (3000, "done", "web"),
        (4000, "done", "web"),
        (60, "fail", "web"),
        (60, "fail", "ada"),
        (60, "park", "ada"),
    ):
        model.note(event(verb, "a", by=owner, ago=ago))
    assert model.rates.ends(NOW.fs / SECOND) == {"web": (2, 1), "ada": (0, 1)}


def test_a_filter_applies_to_the_counted_claims() -> None:
    model = still()
    claim(model, "a1", "w", "h1")
    claim(model, "a2", "w", "h2")
    owners, hosts = groups(held(model, parse(["host=h1"])))
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
def test_the_filter_for_a_holder_finds_it_and_can_be_typed(value: str, expected: str) -> None:
    found = terms("host", value)
    assert found == expected
    model = still()
    claim(model, "a", "w", value)
    claim(model, "b", "w", "zzz")
    if found:
        _, hosts = groups(held(model, parse(found.split())))
        assert [holder.name for holder in hosts] == [value]


@pytest.mark.parametrize("text", hostile.CASES.values(), ids=hostile.CASES.keys())
def test_the_filter_for_a_hostile_name_finds_it_and_is_harmless(text: str) -> None:
    owner = text[:256]
    found = terms("owner", owner)
    assert not hostile.forbidden(found)
    model = still()
    claim(model, "a", owner)
    if found:
        assert len(groups(held(model, parse(found.split())))[0]) == 1
    else:
        assert not set(owner) & set("abcdefghijklmnopqrstuvwxyz")


def test_a_holder_of_whom_nothing_is_known_is_not_said_to_have_stopped() -> None:
    model = still()
    lost = claim(model, "a", "", "", beats=(900,))
    model.apply(Delta(stale={lost: dibs.Verdict.UNKNOWN}))
    claim(model, "b", "gone", "h1", beats=(900,))
    owners, _ = groups(held(model))
    assert {owner.name: owner.unknown for owner in owners} == {"": True, "gone": False}
