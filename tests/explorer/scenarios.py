"""All scenarios of the product."""

from __future__ import annotations

from . import (
    scenes_add,
    scenes_claims,
    scenes_confirming,
    scenes_later,
    scenes_locks,
    scenes_looks,
    scenes_operator,
    scenes_outputs,
    scenes_pause,
    scenes_plain,
    scenes_presence,
    scenes_questions,
    scenes_repair,
    scenes_slots,
    scenes_time,
    scenes_upgrade,
)
from .scenario import Scenario

SCENARIOS: list[Scenario] = [
    *scenes_claims.SCENARIOS,
    *scenes_confirming.SCENARIOS,
    *scenes_operator.SCENARIOS,
    *scenes_add.SCENARIOS,
    *scenes_later.SCENARIOS,
    *scenes_locks.SCENARIOS,
    *scenes_slots.SCENARIOS,
    *scenes_presence.SCENARIOS,
    *scenes_outputs.SCENARIOS,
    *scenes_plain.SCENARIOS,
    *scenes_questions.SCENARIOS,
    *scenes_repair.SCENARIOS,
    *scenes_time.SCENARIOS,
    *scenes_looks.SCENARIOS,
    *scenes_upgrade.SCENARIOS,
    *scenes_pause.SCENARIOS,
]
