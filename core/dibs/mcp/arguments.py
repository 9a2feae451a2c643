"""The arguments of tools: what a client may give, as its schema says and as it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dibs.model.errors import BadName, short

WAIT = 50
"""The longest wait of one call, in seconds: many clients give up after 60."""
PAYLOAD_CHARS = 1 << 20
_CHARS = 8192
"""The most characters of any other text; the board refuses what is too long for its field."""


class Argument(NamedTuple):
    """One argument, a text or a number; a text may have to be one of a few words."""

    text: str = ""
    """What the model reads about it; empty if its name says enough."""
    most: float = 0
    """The highest number; 0 for a text."""
    least: float = 0
    whole: bool = False
    words: tuple[str, ...] = ()
    chars: int = _CHARS

    @property
    def schema(self) -> dict[str, object]:
        """The argument as JSON schema, as short as it can be: every session pays for it."""
        kind = ("integer" if self.whole else "number") if self.most else "string"
        found: dict[str, object] = {"type": kind}
        if self.words:
            found["enum"] = list(self.words)
        return found | ({"description": self.text} if self.text else {})

    def read(self, what: str, value: object) -> Any:
        """The value if it is valid; else `BadName` says what it has to be."""
        return self._number(what, value) if self.most else self._text(what, value)

    def _number(self, what: str, value: object) -> float:
        kind = "a whole number" if self.whole else "a number"
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not self.least <= value <= self.most
        ):
            wanted = f"{kind} from {self.least:g} to {self.most:g}"
            raise BadName(f"{what} must be {wanted}, got {short(value)}")
        if not self.whole:
            return float(value)
        if value != int(value):
            raise BadName(f"{what} must be {kind}, got {short(value)}")
        return int(value)

    def _text(self, what: str, value: object) -> str:
        if not isinstance(value, str):
            raise BadName(f"{what} must be a text, got {short(value)}")
        if self.words and value not in self.words:
            raise BadName(f"{what} must be one of {', '.join(self.words)}, got {short(value)}")
        if len(value) > self.chars:
            raise BadName(f"{what} must have at most {self.chars:,} characters, got {len(value):,}")
        return value


_YEARS = 36_500 * 86_400
ARGUMENTS = {
    "id": Argument(),
    "name": Argument(),
    "claim": Argument("exact name of the claim"),
    "lease": Argument("your claim on it, to renew it"),
    "owner": Argument("your name"),
    "ttl": Argument("lease in seconds", 86_400, 1),
    "meta": Argument("for operators"),
    "wait": Argument(f"seconds, up to {WAIT}", WAIT),
    "slots": Argument("holders at a time", 999, 1, whole=True),
    "note": Argument("what the work does now"),
    "result": Argument(f"up to {_CHARS:,} characters"),
    "how": Argument(
        "retry: the attempt failed, text says why; untouched: not started; "
        "ask: a person has to decide",
        words=("retry", "untouched", "ask"),
    ),
    "text": Argument("the reason, or the question; retry and ask need it"),
    "reason": Argument(),
    "in": Argument("start in so many seconds", _YEARS),
    "filter": Argument("such as state=failed owner=me"),
    "payload": Argument(chars=PAYLOAD_CHARS),
    "priority": Argument("9 first", 9, whole=True),
}


def schema_of(takes: str) -> dict[str, object]:
    """The JSON schema of a tool's arguments."""
    found: dict[str, object] = {
        "type": "object",
        "properties": {name: ARGUMENTS[name].schema for name in names(takes)},
    }
    required = needed(takes)
    return found | ({"required": required} if required else {})


def names(takes: str) -> list[str]:
    """The names of the arguments, of a text such as `claim! note`."""
    return [word.removesuffix("!") for word in takes.split()]


def needed(takes: str) -> list[str]:
    """The names of those that must be given."""
    return [word.removesuffix("!") for word in takes.split() if word.endswith("!")]


def checked(tool: str, takes: str, given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments of a call, all valid; null is as good as not given. Else `BadName`."""
    known = names(takes)
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise BadName(f"{tool} has no argument {short(name)}: it takes {', '.join(known)}")
        if value is not None:
            found[name] = ARGUMENTS[name].read(f"{tool}: {name}", value)
    for name in needed(takes):
        if name not in found:
            raise BadName(f"{tool} needs {name}")
    return found
