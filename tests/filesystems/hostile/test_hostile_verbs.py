"""Every verb on a hostile mount: its result is true, an error is one line, and nothing is lost.

These tests try a part of the faults; DIBS_EVERY_FAULT=1 or `python -m tests.filesystems.hostile`
tries all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.filesystems.hostile.mount import FULL, pair, why_not
from tests.filesystems.hostile.verbs import KERNEL, Stage, Trial, trials
from tests.stress.syscalls.scenarios import SCENARIOS

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

TRIALS = trials(full=FULL)

pytestmark = pytest.mark.timeout(3600 if FULL else 300)


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Stage]]:
    """Two mounts without the kernel's caches, and two with them."""
    plain, cached = (tmp_path_factory.mktemp(name) for name in ("plain", "cached"))
    with pair(plain) as first, pair(cached, **KERNEL) as second:
        yield {False: Stage(first, plain / "links"), True: Stage(second, cached / "links")}


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.name for trial in TRIALS])
def test_every_verb_reports_the_truth_where(trial: Trial, stages: dict[bool, Stage]) -> None:
    wrong = list(stages[trial.cached].all(trial))
    assert not wrong, "\n".join([f"{len(wrong)} of {len(SCENARIOS)} verbs", *wrong[:10]])
