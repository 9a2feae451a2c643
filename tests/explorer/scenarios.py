"""What is explored."""

from __future__ import annotations

from . import (
    scenes_add,
    scenes_claims,
    scenes_locks,
    scenes_looks,
    scenes_operator,
    scenes_plain,
    scenes_repair,
    scenes_time,
    scenes_upgrade,
)
from .scenario import Scenario

SCENARIOS: list[Scenario] = [
    *scenes_claims.SCENARIOS,
    *scenes_operator.SCENARIOS,
    *scenes_add.SCENARIOS,
    *scenes_locks.SCENARIOS,
    *scenes_plain.SCENARIOS,
    *scenes_repair.SCENARIOS,
    *scenes_time.SCENARIOS,
    *scenes_looks.SCENARIOS,
    *scenes_upgrade.SCENARIOS,
]
