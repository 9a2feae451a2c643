"""No verb does anything twice, and none is lost, when its connection is cut before the answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.cluster import Server
from tests.postgres.losses import SCENES, SHORT, Stage, untried
from tests.postgres.proxy import Loss, Proxy


@pytest.fixture(scope="module")
def stage(shared_server: Server) -> Iterator[Stage]:
    with Proxy(shared_server.socket) as proxy:
        yield Stage(shared_server, proxy)


def test_each_verb_of_the_protocols_is_tried_or_has_a_reason() -> None:
    assert untried() == []


@pytest.mark.parametrize("verb", [verb for verb in SCENES if "(" not in verb])
def test_a_verb_survives_the_loss_of_an_answer(stage: Stage, verb: str) -> None:
    reads = SCENES[verb].reads
    trials = stage.trials(verb, (Loss.ANSWER,) if reads else SHORT, last=reads)
    assert [str(trial) for trial in trials if trial.wrong] == []
