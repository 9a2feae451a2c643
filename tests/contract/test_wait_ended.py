"""Waiting until tasks have ended, in Python."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import dibs
from tests.contract.place import Place
from tests.patience import PATIENCE


def waiting(board: dibs.Board, idents: list[str]) -> list[dibs.Task]:
    for ident in idents:
        board.add(ident)
    return [board.find(ident)[0] for ident in idents]


def claimed(board: dibs.Board, ident: str) -> dibs.Claim:
    claim = board.claim(ident, owner="w", ttl=600)
    assert claim is not None
    return claim


class Waiter(threading.Thread):
    """A thread that waits on the real board; it fails the test if it takes too long."""

    def __init__(self, board: dibs.Board, tasks: list[dibs.Task]) -> None:
        super().__init__(daemon=True)
        self._board = dibs.open(board.location.where)
        self._tasks = tasks
        self.seen: list[str] = []
        self.found: list[dibs.Task | None] = []
        self.first = threading.Event()
        self.start()

    def run(self) -> None:
        self.found = self._board.wait_ended(self._tasks, PATIENCE, self._ended)

    def _ended(self, task: dibs.Task) -> None:
        self.seen.append(task.id)
        self.first.set()

    def states(self) -> list[str]:
        self.join(PATIENCE)
        assert not self.is_alive()
        return [task.state if task is not None else "gone" for task in self.found]


def finish(board: dibs.Board, ident: str) -> None:
    claimed(board, ident).done()


def fail_for_good(board: dibs.Board, ident: str) -> None:
    for _ in range(board.settings.max_attempts):
        claimed(board, ident).fail("no")


def park(board: dibs.Board, ident: str) -> None:
    board.park(board.find(ident)[0].name, "by hand")


def remove(board: dibs.Board, ident: str) -> None:
    finish(board, ident)
    board.purge(0)


ENDS: dict[str, tuple[Callable[[dibs.Board, str], object], str]] = {
    "done": (finish, "done"),
    "failed": (fail_for_good, "failed"),
    "parked": (park, "failed"),
    "purged": (remove, "done"),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_wait_ends_with_the_last_task_however_it_ended(place: Place, how: str) -> None:
    act, state = ENDS[how]
    board = place.board
    waiter = Waiter(board, waiting(board, ["a", "b"]))
    finish(board, "a")
    act(board, "b")
    assert waiter.states() == ["done", state]
    assert sorted(waiter.seen) == ["a", "b"]


def test_a_wait_outlasts_failures_that_are_tried_again(place: Place) -> None:
    board = place.board
    tasks = waiting(board, ["a", "b"])
    waiter = Waiter(board, tasks)
    claimed(board, "a").release()
    claimed(board, "a").fail("again")
    finish(board, "b")
    assert waiter.first.wait(PATIENCE)
    assert waiter.is_alive()
    assert waiter.seen == ["b"]
    finish(board, "a")
    assert waiter.states() == ["done", "done"]


def test_a_task_that_is_requeued_meanwhile_is_waited_for_again(place: Place) -> None:
    board = place.board
    waiter = Waiter(board, waiting(board, ["a", "b"]))
    park(board, "a")
    assert waiter.first.wait(PATIENCE)
    board.requeue(board.find("a")[0].name)
    finish(board, "b")
    waiter.join(0.5)
    assert waiter.is_alive()
    finish(board, "a")
    assert waiter.states() == ["done", "done"]


def test_what_has_ended_before_needs_no_wait(place: Place) -> None:
    board = place.board
    waiting(board, ["a", "b"])
    finish(board, "a")
    park(board, "b")
    seen: list[str] = []
    tasks = [board.find(ident)[0] for ident in ("a", "b")]
    found = board.wait_ended(tasks, 0, lambda task: seen.append(task.id))
    assert found == tasks
    assert sorted(seen) == ["a", "b"]
    assert board.wait_ended([]) == []


def test_when_the_time_is_up_the_present_names_are_returned(place: Place) -> None:
    board = place.board
    tasks = waiting(board, ["a", "b"])
    finish(board, "a")
    claim = claimed(board, "b")
    done, held = board.wait_ended(tasks, 2)
    assert done is not None
    assert held is not None
    assert (done.state, held.name) == ("done", claim.task.name)


def test_no_end_of_many_tasks_is_missed(place: Place) -> None:
    board = place.board
    idents = [f"task-{n}" for n in range(60)]
    waiter = Waiter(board, waiting(board, idents))

    def work(part: list[str]) -> None:
        for ident in part:
            finish(place.other(), ident)

    workers = [threading.Thread(target=work, args=(idents[at::3],)) for at in range(3)]
    for worker in workers:
        worker.start()
    assert waiter.states() == ["done"] * 60
    assert sorted(waiter.seen) == sorted(idents)
    for worker in workers:
        worker.join(PATIENCE)
