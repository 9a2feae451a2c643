"""Faults that the storms found, as small tests."""

from pathlib import Path

from dibs.files.clock import ran_evenly, thin
from dibs.model.sample import SECOND, Sample
from tests.core.tools import Place


def test_a_claim_in_a_crowd_returns_none_only_if_nothing_is_available(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for n in range(60):
        place.board.add(f"t{n:02}")
    other, _ = place.another()
    lost: list[str] = []

    def overtake(name: str) -> None:
        if name.endswith(".available") and len(lost) < 4:
            lost.append(name)
            other.claim(name.partition(".")[0], owner="faster")

    place.port.before["rename"] = overtake
    claim = place.board.claim(owner="me")
    waiting = sum(name.endswith(".available") for name in place.names())
    assert claim is not None, f"returned None while {waiting} tasks are available"


def test_a_reaper_that_looks_every_five_seconds_trusts_the_clock_for_a_ttl() -> None:
    samples: list[Sample] = []
    for second in range(0, 3600, 5):
        samples = thin([Sample(second * SECOND, second * SECOND), *samples])
    assert ran_evenly(samples, samples[0], 120)
    assert ran_evenly(samples, samples[0], 600)
