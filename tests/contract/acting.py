"""Runs the dashboard's acts on any board, without its screens."""

from __future__ import annotations

from threading import Event

import dibs
from dibs_tui.acting.execute import Outcome, execute, judge_all
from dibs_tui.acting.plan import ACTS, Target


def target(board: dibs.Board, ident: str) -> Target:
    task = board.find(ident)[0]
    (entry,) = board.entries_of([task])
    name = task.name
    if task.is_shell_claim:
        holder = board.holder(task)
        assert holder is not None
        name = holder.act_name
    return Target(task, name, entry.state, entry.owner, entry.age)


def run(board: dibs.Board, act: str, *targets: Target) -> list[Outcome]:
    outcomes: list[Outcome] = []
    items = list(judge_all(board, targets))
    execute(lambda: board, ACTS[act], items, "test", "ada@web-1", Event(), outcomes.append)
    return outcomes
