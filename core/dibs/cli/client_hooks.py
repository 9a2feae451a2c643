"""The hooks in the settings of Claude Code: added to its JSON, and cut out again exactly."""

from __future__ import annotations

import json
import re
from typing import Any

from dibs.model.errors import BadName
from dibs.model.json_text import JsonMember, begin, cut, insert, members

_EFFECTS = "Bash|Edit|MultiEdit|Write|NotebookEdit|mcp__.*"
EVENTS = {
    "SessionStart": ("session-start", ""),
    "PreToolUse": ("pre-tool", _EFFECTS),
    "PostToolUse": ("post-tool", "*"),
    "Stop": ("stop", ""),
    "SessionEnd": ("session-end", ""),
}
"""For each event of the client: the hook of dibs, and the tools that it is about."""
_SECONDS = 10
"""After this time the client goes on without the hook, so a disk that hangs does not stop it."""
_is_ours = re.compile(r"(?:\S*/)?dibs hook [a-z-]+(?: \|\| true)?").fullmatch
FILE, FOLDER, EMPTY = 1, 2, 3
"""What setup found: no file, not even its folder, or a file without a byte. The order of the events
in a file that setup filled says which, so that `removed` brings exactly that back."""


def entry(event: str) -> dict[str, Any]:
    """The entry of one event. `|| true`: in every case the client goes on, as with exit code 0."""
    word, tools = EVENTS[event]
    command = {"type": "command", "command": f"dibs hook {word} || true", "timeout": _SECONDS}
    return {**({"matcher": tools} if tools else {}), "hooks": [command]}


def added(text: str | None, *, folder: bool = True) -> str:
    """The settings with the hooks; None stands for a file that does not exist."""
    if not text:
        return _filled(EMPTY if text is not None else FILE if folder else FOLDER)
    _check(text)
    if all(_present(text, event) for event in EVENTS):
        return text
    text = removed(text) or "{}"
    found = _member(text, begin(text), "hooks")
    if found is None:
        return insert(text, begin(text), _hooks(0))
    for event in reversed(EVENTS):
        at = _start(text)
        list_of = _member(text, at, event)
        if list_of is None:
            text = insert(text, at, _event(event))
        else:
            text = insert(text, list_of.start, _ENTRIES[event])
    return text


def removed(text: str) -> str | None:
    """The settings without the hooks; None if setup created the file, which then can be removed."""
    if not text or text == _filled(EMPTY):
        return ""
    if text in (_filled(FILE), _filled(FOLDER)):
        return None
    _check(text)
    top = begin(text)
    found = _member(text, top, "hooks")
    if found is None:
        return text
    if text[found.slot : found.end] in map(_hooks, range(EMPTY + 1)):
        return cut(text, top, lambda member: member == found)
    rewritten = False
    for event in EVENTS:
        before = text
        text = _without(text, event)
        rewritten = rewritten or (before != text and _ENTRIES[event] not in before)
    return _without_empty(text) if rewritten else text


def made_folder(text: str) -> bool:
    """Whether setup made the folder of that file, which it filled."""
    return text == _filled(FOLDER)


def _filled(found: int) -> str:
    """The text of a file that setup creates, or fills."""
    return f"{{{_hooks(found)}\n}}\n"


def _without(text: str, event: str) -> str:
    """The settings without the entry of one event, and without the list that was made for it."""
    at = _start(text)
    found = _member(text, at, event)
    if found is None:
        return text
    if text[found.slot : found.end] == _event(event):
        return cut(text, at, lambda member: member == found)
    return cut(text, found.start, _ours)


def _without_empty(text: str) -> str:
    """The same without empty lists: the client has reformatted the file, ours among them."""
    text = cut(text, _start(text), lambda member: member.key in EVENTS and member.value == [])
    return cut(text, begin(text), lambda member: member.key == "hooks" and member.value == {})


def _present(text: str, event: str) -> bool:
    """Whether an event has exactly the entry of today, once."""
    value = json.loads(text).get("hooks", {}).get(event, [])
    return [one for one in value if _is_entry(one)] == [entry(event)]


def _ours(member: JsonMember) -> bool:
    return _is_entry(member.value)


def _is_entry(value: Any) -> bool:
    """Whether an entry has one hook, which is that of dibs."""
    match value:
        case {"hooks": [{"command": str(command)}]}:
            return _is_ours(command) is not None
        case _:
            return False


def _check(text: str) -> None:
    """Refuse settings in which hooks cannot stand."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadName(f"it is not valid JSON ({error})") from None
    if not isinstance(fields, dict):
        raise BadName("it is not a JSON object")
    hooks = fields.get("hooks", {})
    if not isinstance(hooks, dict):
        raise BadName("its `hooks` is not an object")
    for event in EVENTS:
        if not isinstance(hooks.get(event, []), list):
            raise BadName(f"its `hooks.{event}` is not a list")
    for at in (begin(text), *((_start(text),) if "hooks" in fields else ())):
        keys = [member.key for member in members(text, at)]
        if len(set(keys)) < len(keys):
            raise BadName("it has a key twice")


def _member(text: str, at: int, key: str) -> JsonMember | None:
    return next((member for member in members(text, at) if member.key == key), None)


def _start(text: str) -> int:
    """Where the object `hooks` begins."""
    found = _member(text, begin(text), "hooks")
    assert found is not None
    return found.start


def _event(event: str) -> str:
    return f'\n    "{event}": [{_ENTRIES[event]}\n    ]'


_ENTRIES = {event: f"\n      {json.dumps(entry(event))}" for event in EVENTS}


def _hooks(found: int) -> str:
    """The member with all hooks, in an order that says what setup found."""
    order = [*EVENTS][found:] + [*EVENTS][:found]
    return f'\n  "hooks": {{{",".join(map(_event, order))}\n  }}'
