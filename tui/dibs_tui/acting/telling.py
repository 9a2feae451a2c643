"""How a plan, its evidence and its ledger read: on the screen, as text, and as JSON."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.style import Style
from rich.text import Text

from dibs import Verdict
from dibs_tui.acting.doing import Outcome
from dibs_tui.acting.plan import Act, Item, Plan, undoable
from dibs_tui.ages import short
from dibs_tui.config import folder
from dibs_tui.text import clean, fit

Colour = Callable[[str], Style]
"""The style of a colour of the theme, by its name."""
_SHOWN = 500
_ID, _OWNER = 30, 16
_BOLD = Style(bold=True)


def consequences(
    plan: Plan,
    colour: Colour,
    *,
    keep_attempts: bool,
    line: str,
    with_odd: bool = False,
    left_out: str = "",
) -> Text:
    """What will happen to a plan's tasks, what will not, and what does the same; never scrolled."""
    act = plan.act
    text = Text()
    text.append(f"{left_out}\n" if left_out else "", colour("state-late") + _BOLD)
    text.append(f"{act.will}\n")
    if act.id == "requeue":
        kept = "kept" if keep_attempts else "counted from zero"
        text.append(f"attempts: {kept}\n", colour("primary"))
    live = any(item.sight.task.live for item in plan.items)
    text.append(f"{act.wont}\n" if act.wont and (live or act.id != "park") else "", colour("muted"))
    text.append(_way_back(act, plan.chosen(odd=with_odd) or plan.items))
    if line:
        text.append("the same on the command line (c copies it):\n", colour("muted"))
        text.append(f"{clean(line)}\n", colour("primary"))
    text.rstrip()
    return text


def _way_back(act: Act, items: Sequence[Item]) -> str:
    """Whether `u` will undo it, in a line; nothing where there is nothing to say."""
    broken = sum(item.sight.task.live for item in items)
    back = sum(undoable(act, item.sight.task) for item in items)
    if broken:
        some = f"{broken:,} of these cannot be undone; u undoes the other {back:,}."
        return f"A revoked claim never comes back: {some if back else 'this cannot be undone.'}\n"
    return f"u undoes {'it' if len(items) == 1 else 'them all'}.\n" if back else ""


def ended(act: Act, outcomes: Sequence[Outcome]) -> str:
    """What became of a plan, as the title of its ledger."""
    words = [outcome.word for outcome in outcomes]
    what = clean(outcomes[0].sight.task.id, 60) if len(words) == 1 else f"{len(words):,} tasks"
    if "left" in words:
        how = "stopped"
    elif "done" not in words:
        how = "nothing done"
    else:
        how = "done" if set(words) == {"done"} else "partly done"
    return f"{act.title} {what}: {how}"


def evidence(
    plan: Plan, colour: Colour, *, with_odd: bool, beaten: bool, passed: float = 0.0
) -> Text:
    """What is known of a plan's tasks, so many seconds after they were seen."""
    if len(plan.items) != 1:
        return many(plan, colour, with_odd=with_odd, passed=passed)
    text = one(plan.items[0], colour)
    text.append(" · it has beaten since: its owner is at work\n" if beaten else "")
    return text


def one(item: Item, colour: Colour) -> Text:
    """A single task: what was seen of it, the verdict, and what it rests on."""
    sight, task, text = item.sight, item.sight.task, Text()
    text.append(f"{sight.state}", colour(f"state-{sight.state}"))
    owner = f" by {clean(sight.owner)}" if sight.owner else ""
    text.append(f"{owner} · #{task.fence} · {clean(sight.name)}\n")
    if item.changed:
        text.append(f"not done: {item.changed}\n", colour("state-failed"))
    elif item.verdict is not None:
        word = "state-claimed" if item.verdict is Verdict.ALIVE else "state-stale"
        text.append(f"{item.verdict.upper()}\n", colour(word) + Style(bold=True))
        text.append("".join(f" · {proof}\n" for proof in item.proofs))
    return text


def many(plan: Plan, colour: Colour, *, with_odd: bool, passed: float = 0.0) -> Text:
    """Exactly the tasks of a plan with their verdicts, the odd ones first."""
    sure = plan.chosen(odd=False)
    odd = [item for item in plan.items if item.odd]
    text = Text()
    if odd:
        may = sum(not item.changed for item in odd)
        left = f"{may:,} included" if with_odd else "set apart"
        hint = "" if with_odd or not may else f"; a includes the {may:,} that are still there"
        text.append(f"{len(odd):,} odd, {left}{hint}\n", colour("state-late") + _BOLD)
        _rows(text, odd, passed)
        text.append("\n")
    text.append(f"{len(sure):,} of {len(plan.items):,} as they were seen\n", _BOLD)
    _rows(text, sure, passed)
    return text


def _rows(text: Text, items: Sequence[Item], passed: float) -> None:
    text.append("".join(_row(item, passed) for item in items[:_SHOWN]))
    if len(items) > _SHOWN:
        text.append(f"  … and {len(items) - _SHOWN:,} more\n")


def _row(item: Item, passed: float) -> str:
    sight = item.sight
    verdict = item.changed or (item.verdict.upper() if item.verdict else sight.state)
    age = short(None if sight.age is None else sight.age + passed)
    row = f"  {fit(clean(sight.task.id), _ID, cut='middle')} {fit(clean(sight.owner), _OWNER)} "
    return f"{row}{age:>6}  {verdict}\n"


def ledger(outcomes: Sequence[Outcome], colour: Colour, left_out: str = "") -> Text:
    """One outcome for each task; what was not done comes first."""
    text = Text().append(f"{counts(outcomes)}\n", _BOLD)
    text.append(f"{left_out}\n" if left_out else "")
    ranked = sorted(outcomes, key=lambda outcome: outcome.word == "done")
    for outcome in ranked[:_SHOWN]:
        ident = fit(clean(outcome.sight.task.id), _ID, cut="middle")
        look = colour("state-claimed" if outcome.word == "done" else "state-failed")
        text.append(f"  {ident} {outcome.word:<8} {outcome.text}\n", look)
    if len(ranked) > _SHOWN:
        text.append(f"  … and {len(ranked) - _SHOWN:,} more; e saves them all\n")
    return text


def counts(outcomes: Iterable[Outcome]) -> str:
    """How many of each outcome there are."""
    found = Counter(outcome.word for outcome in outcomes)
    return " · ".join(f"{count:,} {word}" for word, count in found.items())


def as_text(outcomes: Iterable[Outcome]) -> str:
    """A ledger as lines of exact name, outcome and words, with tabs between."""
    lines = ((o.sight.name, o.word, o.text) for o in outcomes)
    return "\n".join("\t".join(map(clean, line)) for line in lines) + "\n"


def as_json(act: Act, outcomes: Iterable[Outcome]) -> str:
    """A ledger as one object."""
    rows = [
        {"id": o.sight.task.id, "name": o.sight.name, "outcome": o.word, "text": o.text}
        for o in outcomes
    ]
    return json.dumps({"v": 1, "act": act.words, "outcomes": rows}) + "\n"


def save(act: Act, outcomes: Sequence[Outcome]) -> str:
    """Write a ledger, as text and as JSON, into the user's state folder; returns where, in a line.

    Called in a thread: a home may hang as well.
    """
    place = Path(folder(os.environ, "XDG_STATE_HOME", ".local/state"), "ledgers")
    path = place / f"{time.strftime('%Y%m%d-%H%M%S')}-{act.words}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".txt").write_text(as_text(outcomes), encoding="utf-8")
        path.with_suffix(".json").write_text(as_json(act, outcomes), encoding="utf-8")
    except OSError as error:
        return clean(f"not saved: {path}.txt: {error.strerror}")
    return clean(f"saved: {path}.txt and .json")
