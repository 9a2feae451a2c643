"""What the storms found, small enough to run at once."""

from pathlib import Path

from dibs.clock import SECOND, Sample, thin, vouches
from tests.core.tools import Place


def test_a_crowded_claimant_is_told_none_only_when_nothing_waits(tmp_path: Path) -> None:
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
    assert claim is not None, f"told None while {waiting} tasks wait"


def test_a_reaper_that_looks_every_five_seconds_can_vouch_for_a_ttl() -> None:
    samples: list[Sample] = []
    for second in range(0, 3600, 5):
        samples = thin([Sample(second * SECOND, second * SECOND), *samples])
    assert vouches(samples, samples[0], 120)
    assert vouches(samples, samples[0], 600)
