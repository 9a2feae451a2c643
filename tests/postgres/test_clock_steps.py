"""A server's clock that is set takes no claim that beats, and keeps none that is over."""

from __future__ import annotations

import pytest

from tests.postgres.boards import Site
from tests.postgres.clock_steps import DRILLS, Clocks, Drill


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.__name__.replace("_", " "))
def test_when_the_clock_of_the_server_is_set(site: Site, drill: Drill) -> None:
    drill(Clocks(site))
