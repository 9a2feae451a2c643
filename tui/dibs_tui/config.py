"""What the user wants of the dashboard, and where each wish came from.

A flag goes before the environment, that before `config.toml`, and that before the default.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dibs.errors import BadName
from dibs.filters import seconds

THEMES = ("dibs-dark", "dibs-light", "dibs-colourblind", "dibs-contrast")
NOTIFY = ("off", "osc9", "osc777")
RIGHTS = ("force_release", "requeue", "park", "prioritise", "undo", "purge", "forget", "reap")
"""What may be allowed or not, each by itself."""
_BYTES = 65_536


class BadConfig(BadName):
    """A setting of the dashboard that cannot be used; the message is one line."""


class Config(NamedTuple):
    """The dashboard's settings with their defaults."""

    theme: str = "dibs-dark"
    """One of `THEMES`, or `auto` for whichever fits the terminal."""
    colour: bool = True
    """False, also by `NO_COLOR`: states are told by glyph and word alone."""
    read_only: bool = False
    """No act is offered until it is unlocked."""
    bell: bool = True
    """Ring when something becomes stale, fails, or the storage is lost."""
    notify: str = "off"
    """The same as a notification of the terminal's: by which sequence."""
    alert_command: tuple[str, ...] = ()
    """The same as a command with its arguments, run without a shell."""
    alert_every: float = 10
    """Seconds that lie between two alerts at least."""
    poll: float = 1.5
    """Seconds between two looks where the file system tells of no changes."""
    still: float = 3
    """Seconds for which the order stands after the cursor was moved."""
    waiting_too_long: float = 900
    """Seconds after which a waiting task is a problem."""
    failing_again: int = 3
    """Attempts from which on a task is a problem."""
    bulk_limit: int = 1000
    """The most tasks that one act may name."""
    mouse: bool = True
    """The terminal's own selection needs it off, or shift held."""
    rights: Mapping[str, bool] = {}
    """Which acts are allowed; one that is not named is."""
    keys: Mapping[str, tuple[str, ...]] = {}
    """By the id of a command: the keys that it has instead of its own."""


def path(environ: Mapping[str, str] = os.environ) -> str:
    """Where the user's settings lie, whether there are any or not."""
    return os.path.join(folder(environ, "XDG_CONFIG_HOME", ".config"), "config.toml")


def folder(environ: Mapping[str, str], variable: str, default: str) -> str:
    """The dashboard's folder in one of the XDG places; a relative one counts for nothing."""
    base = environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.join(environ.get("HOME") or os.path.expanduser("~"), default)
    return os.path.join(base, "dibs")


def load(
    flags: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> tuple[Config, dict[str, str]]:
    """The settings and the source of each; a flag that was not given is None."""
    file = path(environ)
    found: dict[str, object] = {}
    sources = dict.fromkeys(Config._fields, "default")
    for key, value in _table(file).items():
        found[key] = _checked(file, key, value)
        sources[key] = "config.toml"
    for key, (value, variable) in _wishes(environ).items():
        found[key] = _checked(f"${variable}", key, value)
        sources[key] = f"${variable}"
    for key, value in flags.items():
        if value is not None:
            flag = f"--{key.replace('_', '-')}"
            found[key] = _checked(flag, key, value)
            sources[key] = flag
    return Config(**found), sources  # type: ignore[arg-type]  # every value was checked


def described(config: Config, sources: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Every key with its value, as it would be written in the file, and its source."""
    return [(key, _toml(value), sources[key]) for key, value in config._asdict().items()]


def _table(file: str) -> dict[str, Any]:
    """What the file holds; nothing where there is none."""
    data = _read(file)
    if not data:
        return {}
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except RecursionError:
        raise BadConfig(f"{file}: nested too deeply; mend or remove it") from None
    except ValueError as error:
        raise BadConfig(f"{file}: {error}; mend or remove it") from None


def _read(file: str) -> bytes:
    try:
        data = read_plain(file)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise BadConfig(f"{file}: {error.strerror}; make it readable or remove it") from None
    except ValueError as error:
        raise BadConfig(f"{file}: {error}; mend or remove it") from None
    if len(data) > _BYTES:
        raise BadConfig(f"{file}: larger than {_BYTES} bytes; mend or remove it")
    return data


def read_plain(file: str, flags: int = 0) -> bytes:
    """The beginning of a small file; ValueError for what is none, and no wait for a pipe."""
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a plain file")
        return os.read(fd, _BYTES + 1)
    finally:
        os.close(fd)


def _wishes(environ: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    """What the environment says, by key, with the variable that says it."""
    wishes: dict[str, tuple[object, str]] = {}
    if environ.get("DIBS_THEME"):
        wishes["theme"] = (environ["DIBS_THEME"], "DIBS_THEME")
    if environ.get("DIBS_READ_ONLY"):
        word = environ["DIBS_READ_ONLY"].lower()
        wishes["read_only"] = (_WORDS.get(word, environ["DIBS_READ_ONLY"]), "DIBS_READ_ONLY")
    if "NO_COLOR" in environ:
        wishes["colour"] = (False, "NO_COLOR")
    return wishes


_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def _checked(source: str, key: str, value: object) -> object:
    """The value as the dashboard uses it, or the one line that says what to write instead."""
    if key not in _RULES:
        raise BadConfig(f"{source}: there is no setting {key!a}; {like(key, _RULES)}")
    wanted, rule = _RULES[key]
    try:
        return rule(value)
    except (ValueError, BadName):
        raise BadConfig(f"{source}: {key} must be {wanted}, not {_short(value)}") from None


def like(word: str, known: Mapping[str, object]) -> str:
    """The known words that somebody may have meant."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1, 0.6)
    return f"write {close[0]}" if close else f"there are {', '.join(known)}"


def _choice(*words: str) -> tuple[str, Callable[[object], object]]:
    def rule(value: object) -> object:
        if value in words:
            return value
        raise ValueError

    return " or ".join(f'"{word}"' for word in words), rule


def _number(low: int, high: int) -> tuple[str, Callable[[object], object]]:
    def rule(value: object) -> object:
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError

    return f"a whole number, {low} to {high}", rule


def _span(low: float, high: float) -> tuple[str, Callable[[object], object]]:
    def rule(value: object) -> object:
        span = seconds(value) if isinstance(value, str) else value
        if isinstance(span, (int, float)) and not isinstance(span, bool) and low <= span <= high:
            return float(span)
        raise ValueError

    return f'{low:g} to {high:g} seconds, or a time such as "5s"', rule


def _flag(value: object) -> object:
    if isinstance(value, bool):
        return value
    raise ValueError


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError
    if not all(isinstance(word, str) and word and "\0" not in word for word in value):
        raise ValueError
    return tuple(value)


def _keys(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ValueError
    found = {
        command: _strings([keys] if isinstance(keys, str) else keys)
        for command, keys in value.items()
    }
    if not all(found.values()):
        raise ValueError
    return found


def _rights(value: object) -> Mapping[str, bool]:
    if not isinstance(value, Mapping) or not value.keys() <= set(RIGHTS):
        raise ValueError
    if not all(isinstance(allowed, bool) for allowed in value.values()):
        raise ValueError
    return dict(value)


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _toml(value: object) -> str:
    """A value as it is written in the file."""
    import json

    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(k)} = {json.dumps(v)}' for k, v in value.items())}}}"
    return json.dumps(value)


_TRUTH = ("true or false", _flag)
_RULES: dict[str, tuple[str, Callable[[object], object]]] = {
    "theme": _choice(*THEMES, "auto"),
    "colour": _TRUTH,
    "read_only": _TRUTH,
    "bell": _TRUTH,
    "notify": _choice(*NOTIFY),
    "alert_command": ('a list of strings, such as ["notify-send", "dibs"]', _strings),
    "alert_every": _span(1, 86_400),
    "poll": _span(0.2, 60),
    "still": _span(0, 60),
    "waiting_too_long": _span(1, 10 * 365 * 86_400),
    "failing_again": _number(1, 999_999_999),
    "bulk_limit": _number(1, 1_000_000),
    "mouse": _TRUTH,
    "rights": (f"a table of true or false for {', '.join(RIGHTS)}", _rights),
    "keys": ('a table of commands, each with a key such as "f6" or a list of keys', _keys),
}
