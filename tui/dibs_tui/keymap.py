"""The user's own keys, checked before the screen takes them: Textual accepts any nonsense."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Protocol

from dibs_tui.config import BadConfig, like


class Command(Protocol):
    """What is asked of a command here."""

    @property
    def id(self) -> str:
        """Its name in the `[keys]` table."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it has by itself."""


MODIFIERS = ("alt", "ctrl", "hyper", "meta", "shift", "super")
_WHERE = "config.toml [keys]"
_FLOW = "terminals use it for flow control"
_SWALLOWED = {
    "ctrl+a": "screen takes it",
    "ctrl+b": "tmux takes it",
    "ctrl+c": "it interrupts",
    "ctrl+z": "it suspends",
    "ctrl+s": _FLOW,
    "ctrl+q": _FLOW,
    "ctrl+h": "terminals send it for backspace",
    "ctrl+i": "terminals send it for tab",
    "ctrl+j": "terminals send it for a new line",
    "ctrl+m": "terminals send it for enter",
    "return": 'it never arrives: the key is called "enter"',
    **dict.fromkeys(("f1", "f5", "f10", "f11"), "terminal windows keep it for themselves"),
}
_NEVER_FORCE = {
    **dict.fromkeys(("ctrl+d", "ctrl+k"), "hands scroll with it"),
    **dict.fromkeys(("enter", "space", "tab", "escape"), "it never starts what destroys"),
}


def check(
    keys: Mapping[str, Sequence[str]], commands: Iterable[Command]
) -> dict[str, tuple[str, ...]]:
    """The user's keys as Textual spells them, or the one line that says what is wrong with them.

    A command that has `destructive` set takes no key that is pressed by habit or by accident.
    """
    registry = {command.id: command for command in commands}
    found = {}
    for ident, wanted in keys.items():
        if ident not in registry:
            raise BadConfig(f"{_WHERE}: there is no command {ident!a}; {like(ident, registry)}")
        destructive = bool(getattr(registry[ident], "destructive", False))
        found[ident] = tuple(_usable(ident, key, destructive) for key in wanted)
    _distinct(found, registry)
    return found


def _usable(ident: str, key: str, destructive: bool) -> str:
    """The key as Textual spells it, if a terminal sends it and the command may have it."""
    name = _spelled(ident, key)
    reason = _SWALLOWED.get(name) or (_NEVER_FORCE.get(name) if destructive else None)
    if reason is None and destructive and len(name) == 1 and not name.isupper():
        reason = "what destroys has a capital letter, a function key or one with ctrl"
    if reason is not None:
        raise BadConfig(f"{_WHERE}: {ident} cannot have {key!a}: {reason}")
    return name


def _spelled(ident: str, key: str) -> str:
    from textual.keys import _character_to_key

    if len(key) == 1 and key.isprintable():
        return _character_to_key(key)
    *modifiers, base = key.split("+")
    if base not in _names() or not set(modifiers) <= set(MODIFIERS):
        raise BadConfig(f"{_WHERE}: {ident}: {key!a} is no key; {_meant(key)}")
    if modifiers and len(base) == 1 and ("shift" in modifiers or base.isupper()):
        plain = [word for word in modifiers if word != "shift"]
        sent = base.upper() if not plain else "+".join([*plain, base.lower()])
        raise BadConfig(f"{_WHERE}: {ident}: {key!a} never arrives; write {sent!a}")
    return "+".join([*sorted(set(modifiers)), base])


def _meant(key: str) -> str:
    from difflib import get_close_matches

    known = {name for name in _names() if len(name) > 1}
    known |= {f"ctrl+{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"}
    close = get_close_matches(key.lower(), sorted(known), 1, 0.6)
    return f'write "{close[0]}"' if close else 'write such as "x", "X", "ctrl+x", "f6", "pageup"'


@cache
def _names() -> frozenset[str]:
    """Every key that Textual knows, without modifiers."""
    from textual.keys import Keys, _character_to_key

    named = {key.value.rpartition("+")[2] for key in Keys if not key.value.startswith("<")}
    typed = {_character_to_key(chr(code)) for code in range(32, 127)}
    return frozenset(named | typed) - {""}


def _distinct(found: Mapping[str, tuple[str, ...]], registry: Mapping[str, Command]) -> None:
    """No key of the user's may hide another command."""
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
                    f"{_WHERE}: {ident} cannot have {key!a}: {other} has it; give that another key"
                )
