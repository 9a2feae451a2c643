"""No verb does anything twice, and none is lost, when its connection is cut before the answer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from tests.core.conftest import fast
from tests.postgres.losses import SCENES, Scene, shape
from tests.remote.place import Place
from tests.remote.proxy import Loss, Proxy

SETTINGS = {"retry": (60,)}
ONLY_THE_REST = ("board.reap", "board.purge", "board.resume_claims")
"""What these return after a restart is what was left for the second request."""
LOGGED_TWICE = ("board.forget", "board.forget_each", "board.purge", "log.note")
"""The log may have a second line of these, on which nothing depends."""


class Stage:
    """A board behind a server behind a proxy, a new one for each call."""

    def __init__(self) -> None:
        self.proxy = Proxy()

    def called(
        self, scene: Scene, number: int = -1, loss: Loss = Loss.ANSWER
    ) -> tuple[object, ...]:
        """What a verb returns, and what the board is after it, with one request lost."""
        place = Place(Path(tempfile.mkdtemp(prefix="dibs-", dir=fast())), **SETTINGS)
        proxy = self.proxy

        def restart() -> None:
            place.restart()
            proxy.target = place.address

        proxy.target, proxy.restart = place.address, restart
        try:
            given = scene.prepare(dibs.open(proxy.url))
            board = dibs.open(proxy.url)
            if hasattr(given, "_session"):
                given._session = board._session  # type: ignore[attr-defined]
            proxy.spare()
            if number >= 0:
                proxy.lose(number, loss)
            try:
                value: object = shape(scene.act(board, given))
            except dibs.DibsError as error:
                value = f"{type(error).__name__}: {error}"
            count = proxy.requests
            proxy.spare()
            direct = dibs.open(place.path)
            picture = [shape(name) for name in place.names()]
            events = [
                [event.verb, shape(event.src), shape(event.dst), shape(event.reason)]
                for event in direct.log.oldest_first()
            ]
            return value, picture, events, count
        finally:
            place.remove()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    found = Stage()
    yield found
    found.proxy.close()


@pytest.mark.parametrize("verb", list(SCENES))
def test_a_verb_survives_the_loss_of_a_request_or_an_answer(stage: Stage, verb: str) -> None:
    scene = SCENES[verb]
    *expected, count = stage.called(scene)
    assert isinstance(count, int)
    for number in range(count):
        for loss in (Loss.ANSWER,) if scene.reads else (Loss.REQUEST, Loss.ANSWER, Loss.HALF):
            *found, _ = stage.called(scene, number, loss)
            assert stage.proxy.lost == 1 or not found[2]
            assert found == expected, (number, loss)


@pytest.mark.parametrize("verb", [verb for verb in SCENES if not SCENES[verb].reads])
def test_a_verb_survives_a_server_that_is_killed_after_it_was_done(stage: Stage, verb: str) -> None:
    """The new server knows no request that the old one had."""
    scene = SCENES[verb]
    *expected, count = stage.called(scene)
    assert isinstance(count, int)
    for number in range(count):
        value, names, events, _ = stage.called(scene, number, Loss.RESTART)
        assert names == expected[1]
        if verb not in LOGGED_TWICE:
            assert events == expected[2], "nothing is done twice"
        if verb not in ONLY_THE_REST:
            assert value == expected[0]
