"""Checks the user's keys before the screen binds them: Textual accepts any text as a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Protocol

from dibs_tui.settings.config import BadConfig, like


class BoundCommand(Protocol):
    """What a command needs to have its keys checked."""

    @property
    def id(self) -> str:
        """The name in the `[keys]` table."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The default keys."""

    @property
    def destructive(self) -> bool:
        """Whether it changes the board."""


MODIFIERS = ("alt", "ctrl", "hyper", "meta", "shift", "super")
_WHERE = "config.toml [keys]"
_FLOW = "terminals use it for flow control"
_SWALLOWED = {
    "ctrl+a": "screen takes it",
    "ctrl+b": "tmux takes it",
    "ctrl+c": "it always quits",
    "ctrl+z": "it always suspends",
    "ctrl+s": _FLOW,
    "ctrl+q": _FLOW,
    "ctrl+h": "terminals send it for backspace",
    "ctrl+i": "terminals send it for tab",
    "ctrl+j": "terminals send it for a new line",
    "ctrl+m": "terminals send it for enter",
    "return": 'terminals never send it; the key is called "enter"',
    **dict.fromkeys(("f1", "f5", "f10", "f11"), "terminal windows use it themselves"),
}
_NEVER_ACT = {
    **dict.fromkeys(("ctrl+d", "ctrl+k"), "vim users scroll with it"),
    **dict.fromkeys(("enter", "space", "tab", "escape"), "it is too easily pressed for an act"),
}


def check(
    keys: Mapping[str, Sequence[str]], commands: Iterable[BoundCommand]
) -> dict[str, tuple[str, ...]]:
    """The user's keys as Textual spells them; raises `BadConfig` if one cannot be used.

    A `destructive` command cannot have a key that is pressed by habit or by accident.
    """
    registry = {command.id: command for command in commands}
    found = {}
    for ident, wanted in keys.items():
        if ident not in registry:
            raise BadConfig(f"{_WHERE}: there is no command {ident!r}; {like(ident, registry)}")
        destructive = registry[ident].destructive
        found[ident] = tuple(_usable(ident, key, destructive) for key in wanted)
    _distinct(found, registry)
    return found


def _usable(ident: str, key: str, destructive: bool) -> str:
    """The key as Textual spells it; raises `BadConfig` if the command cannot have it."""
    name = _spelled(ident, key)
    reason = _SWALLOWED.get(name) or (_NEVER_ACT.get(name) if destructive else None)
    if reason is None and destructive and len(name) == 1 and not name.isupper():
        reason = "an act needs a capital letter, a function key or ctrl"
    if reason is not None:
        raise BadConfig(f"{_WHERE}: {ident} cannot have {key!r}: {reason}")
    return name


def _spelled(ident: str, key: str) -> str:
    from textual.keys import _character_to_key

    if len(key) == 1 and key.isprintable():
        return _character_to_key(key)
    *modifiers, base = key.split("+")
    if base not in _names() or not set(modifiers) <= set(MODIFIERS):
        raise BadConfig(f"{_WHERE}: {ident}: {key!r} is not a key; {_meant(key)}")
    if modifiers and len(base) == 1 and ("shift" in modifiers or base.isupper()):
        plain = [word for word in modifiers if word != "shift"]
        sent = base.upper() if not plain else "+".join([*plain, base.lower()])
        raise BadConfig(f"{_WHERE}: {ident}: terminals never send {key!r}; write {sent!r}")
    return "+".join([*sorted(set(modifiers)), base])


def _meant(key: str) -> str:
    from difflib import get_close_matches

    known = {name for name in _names() if len(name) > 1}
    known |= {f"ctrl+{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"}
    close = get_close_matches(key.lower(), sorted(known), 1, 0.6)
    examples = '"x", "X", "ctrl+x", "f6", "pageup"'
    return f'did you mean "{close[0]}"?' if close else f"keys are written like {examples}"


@cache
def _names() -> frozenset[str]:
    """The names of all keys that Textual knows, without modifiers."""
    from textual.keys import Keys, _character_to_key

    named = {key.value.rpartition("+")[2] for key in Keys if not key.value.startswith("<")}
    typed = {_character_to_key(chr(code)) for code in range(32, 127)}
    return frozenset(named | typed) - {""}


def _distinct(found: Mapping[str, tuple[str, ...]], registry: Mapping[str, BoundCommand]) -> None:
    """Raise `BadConfig` if two commands have the same key."""
    from textual.keys import _character_to_key

    owners: dict[str, str] = {}
    for ident, command in registry.items():
        if ident not in found:
            for key in command.keys:
                owners[_character_to_key(key) if len(key) == 1 else key] = ident
    for ident, keys in found.items():
        for key in keys:
            other = owners.setdefault(key, ident)
            if other != ident:
                raise BadConfig(
                    f"{_WHERE}: {ident} cannot have {key!r}: {other} has it; "
                    f"give {other} another key"
                )
