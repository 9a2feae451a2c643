"""The act controller without a screen: what a key captures, opens and refuses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from typing import Any

import pytest

from dibs import Board, Event, Task
from dibs_tui.acting.act_controller import ActController, Ended
from dibs_tui.acting.execute import Outcome
from dibs_tui.acting.janitor import Janitor
from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.acting.plan import Act, Target
from dibs_tui.acting.undo import Step
from dibs_tui.model.board import BoardModel
from dibs_tui.model.commands import COMMANDS
from tests.tui.board_models import claim, event, put, still

pytestmark = pytest.mark.fast("dibs_tui.acting")

FAILED = "failed/task-9.f1a3.web-3-0000000002"
DESTRUCTIVE = [command.id for command in COMMANDS if command.destructive]


class Surface:
    """A stand-in for the screen, set up by each test."""

    def __init__(self, model: BoardModel) -> None:
        self.filter_text = ""
        self.behind = False
        self.cursor_id = ""
        self.locked = ""
        self.names: list[str] = []
        self.refusal = ""
        self.done: list[str] = []
        self.left: set[str] = set()
        self.messages: list[str] = []
        self.new_names: dict[str, str] = {}
        self.ticks = 0
        self._model = model

    def why_locked(self) -> str:
        return self.locked

    def selected(self) -> tuple[list[Task], str]:
        return self.listed(), self.refusal

    def listed(self) -> list[Task]:
        return [self._model.tasks[name] for name in self.names]

    def renamed(self, names: dict[str, str]) -> None:
        self.new_names |= names

    def acted(self, done: Sequence[Task], left: Set[str]) -> None:
        self.done = [task.name for task in done]
        self.left = set(left)

    def tick(self) -> None:
        self.ticks += 1

    def say(self, words: str) -> None:
        self.messages.append(words)

    def say_done(self, words: str, how: str, *, undo: bool) -> None:
        self.messages.append(f"{words}: {how}{'; u undoes it' if undo else ''}")


class Dialogs:
    """Records each dialog that is opened, and its arguments."""

    def __init__(self) -> None:
        self.opened: list[tuple[Any, ...]] = []
        self.left_out = ""

    def act(
        self,
        act: Act,
        targets: tuple[Target, ...],
        ended: Ended,
        left_out: str = "",
        undo: Callable[[], object] | None = None,
    ) -> None:
        self.opened.append((act.id, targets, ended))
        self.left_out = left_out

    def matches(
        self, terms: str, targets: tuple[Target, ...], chosen: Callable[[str | None], None]
    ) -> None:
        self.opened.append(("matches", terms, chosen))

    def requeue_list(self, found: Callable[[tuple[Target, ...] | None], None]) -> None:
        self.opened.append(("requeue-list", found))

    def undo(
        self,
        ident: str,
        *,
        row: bool,
        plan: Callable[[Step], None],
        renamed: Callable[[dict[str, str]], None],
    ) -> None:
        self.opened.append(("undo", ident, row, plan))

    def answer(self, task: Task, renamed: Callable[[dict[str, str]], None]) -> None:
        self.opened.append(("answer", task, renamed))

    def pause(self) -> None:
        self.opened.append(("pause-board",))

    def resume(self) -> None:
        self.opened.append(("resume",))

    def purge(self) -> None:
        self.opened.append(("purge",))

    def deliveries(self) -> None:
        self.opened.append(("deliveries",))

    def forget(self, ident: str) -> None:
        self.opened.append(("forget", ident))


class Desk:
    """A controller with everything that it needs."""

    def __init__(self, **rights: bool) -> None:
        self.model = still()
        self.surface = Surface(self.model)
        self.dialogs = Dialogs()
        self.keys = KeyBurstGuard()
        self.janitor = Janitor(_no_board, "ada@desk")
        self.acts = ActController(
            self.surface, self.dialogs, self.model, self.janitor, self.keys, rights
        )

    def select(self, *names: str) -> None:
        self.surface.names = list(names)

    def stale(self, ident: str) -> str:
        return claim(self.model, ident, "web-3", beats=(500,))

    @property
    def kinds(self) -> list[str]:
        return [opened[0] for opened in self.dialogs.opened]


def _no_board() -> Board:
    raise AssertionError("nothing is opened here")


@pytest.fixture
def desk() -> Desk:
    return Desk()


def outcomes(desk: Desk, *words: str) -> dict[str, Outcome]:
    """The outcomes of the tasks of the last act."""
    targets = desk.dialogs.opened[-1][1]
    pairs = zip(targets, words, strict=True)
    return {target.task.name: Outcome(target, word, f"now {word}") for target, word in pairs}


def test_every_command_that_changes_the_board_has_a_handler(desk: Desk) -> None:
    assert set(desk.acts.handlers) == set(DESTRUCTIVE)


def test_a_key_opens_its_act_on_exactly_the_selected_claim(desk: Desk) -> None:
    name = desk.stale("task-1")
    desk.stale("task-2")
    desk.select(name)
    assert desk.acts.handlers["force-release"]() is None
    ((act, (target,), _),) = desk.dialogs.opened
    assert act == "force-release"
    assert (target.name, target.state, target.owner) == (name, "stale", "web-3")


def test_requeue_releases_a_stale_claim_and_requeues_a_failed_task(
    desk: Desk,
) -> None:
    name = desk.stale("task-1")
    put(desk.model, FAILED)
    desk.select(name)
    desk.acts.start("requeue")
    desk.select(FAILED)
    desk.acts.start("requeue")
    assert desk.kinds == ["reap", "requeue"]


def test_an_answer_is_for_one_asked_task(desk: Desk) -> None:
    names = [f"task-{n}.f1.web-3-000000000{n}.asked" for n in (1, 2)]
    put(desk.model, *names, FAILED)
    desk.select(FAILED)
    assert desk.acts.start("answer") == "only for asked; this is failed"
    desk.select(*names)
    assert "alone" in (desk.acts.start("answer") or "")
    desk.select(names[0])
    assert desk.acts.start("answer") is None
    ((kind, task, renamed),) = desk.dialogs.opened
    assert (kind, task.name) == ("answer", names[0])
    renamed({})


def test_an_undo_is_offered_only_after_an_act_that_can_be_undone(desk: Desk) -> None:
    name = desk.stale("task-1")
    put(desk.model, FAILED)
    assert not desk.acts.can_undo
    for selected, command, can in (
        (name, "force-release", False), (FAILED, "requeue", True), (name, "park", False),
    ):  # fmt: skip
        desk.select(selected)
        desk.acts.start(command)
        desk.dialogs.opened[-1][2](outcomes(desk, "done"))
        assert desk.acts.can_undo is can
    desk.select(FAILED)
    desk.acts.start("requeue")
    desk.dialogs.opened[-1][2](outcomes(desk, "refused"))
    assert not desk.acts.can_undo


@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_every_command_says_why_the_screen_is_locked(desk: Desk, command: str) -> None:
    desk.surface.locked = "read-only"
    assert desk.acts.start(command) == "read-only"
    assert not desk.dialogs.opened
    assert not desk.janitor.on


def test_the_janitor_can_be_stopped_while_everything_else_is_locked(desk: Desk) -> None:
    assert (desk.acts.start("reaping") or "").startswith("on: ")
    desk.surface.locked = "read-only"
    assert desk.acts.start("reaping") == "off; 0 claims were requeued"
    assert desk.surface.ticks == 2


@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_a_key_in_a_burst_opens_nothing(desk: Desk, command: str) -> None:
    for _ in range(3):
        desk.keys.pressed(time.monotonic())
    assert desk.acts.start(command) == "ignored: keys came too fast, as if pasted"
    assert not desk.dialogs.opened


def test_a_key_opens_nothing_until_the_terminal_shows_its_rows(desk: Desk) -> None:
    desk.select(desk.stale("task-1"))
    desk.surface.behind = True
    assert "still shows older rows" in (desk.acts.start("force-release") or "")
    assert not desk.dialogs.opened


def test_the_screens_note_about_the_selection_is_passed_on(desk: Desk) -> None:
    desk.surface.refusal = "row moved — look again"
    assert desk.acts.start("park") == "row moved — look again"
    assert not desk.dialogs.opened


def test_a_denied_right_locks_only_its_command() -> None:
    desk = Desk(park=False)
    desk.select(desk.stale("task-1"))
    assert "park = false" in (desk.acts.start("park") or "")
    assert desk.acts.start("force-release") is None


def test_an_act_names_the_states_that_it_does_not_apply_to(desk: Desk) -> None:
    put(desk.model, "task-1.available")
    desk.select("task-1.available")
    why = desk.acts.start("force-release")
    assert why == "only for claimed, held, stale; this is available"


def test_while_the_storage_is_in_doubt_only_a_single_claim_is_accepted(desk: Desk) -> None:
    names = [desk.stale("task-1"), desk.stale("task-2")]
    desk.model.brake.note_probe(5.0, time.monotonic())
    desk.select(*names)
    assert "the storage is slow" in (desk.acts.start("force-release") or "")
    desk.select(names[0])
    assert desk.acts.start("force-release") is None


def test_a_bulk_act_marks_the_tasks_that_were_not_done(desk: Desk) -> None:
    names = [desk.stale("task-1"), desk.stale("task-2")]
    desk.select(*names)
    desk.acts.start("force-release")
    desk.dialogs.opened[-1][2](outcomes(desk, "done", "refused"))
    assert desk.surface.done == names[:1]
    assert desk.surface.left == {names[1]}
    assert not desk.surface.messages


def test_a_name_that_another_person_acted_on_is_not_marked_any_longer(desk: Desk) -> None:
    names = [desk.stale(f"task-{n}") for n in range(3)]
    desk.select(*names)
    desk.acts.start("force-release")
    desk.dialogs.opened[-1][2](outcomes(desk, "changed", "gone", "error"))
    assert desk.surface.done == names[:2]
    assert desk.surface.left == {names[2]}
    assert desk.acts.why_no_copy(), "y was meant for the act that was refused"


def test_the_outcome_for_a_single_task_is_shown(desk: Desk) -> None:
    put(desk.model, "task-1.available")
    desk.select("task-1.available")
    desk.acts.start("park")
    desk.dialogs.opened[-1][2](outcomes(desk, "done"))
    assert desk.surface.messages == ["task-1: now done; u undoes it"]
    desk.dialogs.opened[-1][2](None)
    assert len(desk.surface.messages) == 1


def test_undo_begins_with_the_row_only_if_it_was_chosen_since_the_last_act(desk: Desk) -> None:
    put(desk.model, "task-1.available")
    desk.select("task-1.available")
    desk.surface.cursor_id = "task-1"
    desk.acts.start("undo")
    desk.acts.chosen()
    desk.acts.start("undo")
    desk.acts.start("park")
    time.sleep(0.001)
    desk.dialogs.opened[-1][2](outcomes(desk, "done"))
    desk.acts.start("undo")
    rows = [opened[2] for opened in desk.dialogs.opened if opened[0] == "undo"]
    assert rows == [False, True, False]


def test_a_bulk_act_is_undone_by_its_own_plan(desk: Desk) -> None:
    step: tuple[Event, ...] = tuple(
        event("park", ident, f"{ident}.available", f"failed/{ident}.f1.ada-0000000001", "ada@desk")
        for ident in ("task-1", "task-2")
    )
    desk.acts.start("undo")
    desk.dialogs.opened[-1][3](step)
    act, targets, _ = desk.dialogs.opened[-1]
    assert act == "undo"
    assert [target.name for target in targets] == [event.dst for event in step]
    assert {target.state for target in targets} == {"→ available"}


def test_all_matches_are_those_listed_when_the_key_was_pressed(desk: Desk) -> None:
    assert "no filter is set" in (desk.acts.start("matches") or "")
    desk.surface.filter_text = "owner=web-3"
    assert desk.acts.start("matches") == "no rows match the filter"
    name = desk.stale("task-1")
    desk.select(name)
    assert desk.acts.start("matches") is None
    _, terms, chosen = desk.dialogs.opened[-1]
    assert terms == "owner=web-3"
    desk.select(name, desk.stale("task-2"))
    chosen("force-release")
    assert [target.name for target in desk.dialogs.opened[-1][1]] == [name]
    chosen("raise")
    assert desk.surface.messages == ["raise: only for available, later; this is stale"]


def test_an_act_from_another_screen_needs_the_tasks_exact_name(desk: Desk) -> None:
    name = desk.stale("task-1")
    task = desk.model.tasks[name]
    assert desk.acts.start_on("force-release", task) is None
    desk.model.tasks = {}
    assert (
        desk.acts.start_on("force-release", task)
        == "the task has changed or is gone; Esc returns to the board"
    )
    assert desk.acts.start_on("forget", task) is None
    assert desk.kinds == ["force-release", "forget"]


def test_forget_needs_an_id_under_the_cursor(desk: Desk) -> None:
    assert desk.acts.start("forget") == "no task under the cursor"
    desk.surface.cursor_id = "task-9"
    desk.acts.start("forget")
    assert desk.dialogs.opened == [("forget", "task-9")]


def test_a_pasted_list_becomes_an_act_on_the_tasks_found(desk: Desk) -> None:
    put(desk.model, FAILED)
    desk.acts.start("requeue-list")
    found = desk.dialogs.opened[-1][1]
    found(())
    found(None)
    assert desk.kinds == ["requeue-list"]
    task = desk.model.tasks[FAILED]
    found((Target(task, task.name, task.state, "", None),))
    assert desk.kinds == ["requeue-list", "requeue"]
