"""The dashboard's settings, and the source of each.

A flag overrides the environment, which overrides `config.toml`, which overrides the default.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dibs.model.errors import BadName
from dibs.model.filters import seconds
from dibs.model.settings import line_of, why_invalid

THEMES = ("dibs-dark", "dibs-light", "dibs-colourblind", "dibs-contrast")
GLYPHS = ("auto", "unicode", "ascii")
NOTIFY = ("off", "osc9", "osc777")
RIGHTS = (
    *("force_release", "requeue", "park", "answer", "prioritize", "undo", "pause"),
    *("purge", "forget"),
    *("reap", "deliveries"),
)
"""The acts that the `[rights]` of the configuration can lock, each separately."""
NOT_LOCAL = "locked: this dashboard has no files or programs of its machine"
"""What is said where `local` is false."""
_FORMER_RIGHTS = {"prioritise": "prioritize"}
_BYTES = 65_536


class BadConfig(BadName):
    """A setting that is invalid; the message is one line."""


class Config(NamedTuple):
    """The dashboard's settings with their defaults."""

    theme: str = "dibs-dark"
    """The colours; `auto` is the default theme."""
    colour: bool = True
    """False, also by `NO_COLOR`: states are shown by glyph and word only."""
    glyphs: str = "auto"
    """The characters for states and frames; `auto` is ASCII where the locale has no UTF-8."""
    read_only: bool = False
    """Whether every act is locked until the dashboard is unlocked."""
    bell: bool = True
    """Whether to ring when claims become stale, tasks fail, or the storage is lost."""
    notify: str = "off"
    """The escape sequence that shows an alert as a notification of the terminal."""
    alert_command: tuple[str, ...] = ()
    """A command that runs at an alert, without a shell; the text is its last argument."""
    evidence_command: tuple[str, ...] = ()
    """A command, run without a shell, whose first line says more about a claim's holder."""
    alert_every: float = 10
    """The least seconds between two alerts; events in between are counted in the next one."""
    poll: float = 1.5
    """Seconds between two readings where the file system reports no changes."""
    still: float = 3
    """Seconds for which the order of rows does not change after the cursor moves."""
    waiting_too_long: float = 900
    """Seconds after which an available task is a problem, unless the queue is being worked off."""
    failing_again: int = 3
    """The number of attempts that makes a task a problem."""
    bulk_limit: int = 1000
    """The number of tasks above which an act asks for that number to be typed."""
    mouse: bool = True
    """False lets the terminal select text; otherwise that needs the shift key."""
    local: bool = True
    """False locks what reaches this machine's files and programs: export, the pager, suspend."""
    rights: Mapping[str, bool] = {}
    """Which acts are allowed; one that is not named is. `reap` is automatic requeueing here."""
    keys: Mapping[str, tuple[str, ...]] = {}
    """Other keys for commands, such as `freeze = ["f2", "f3"]`; they replace the command's own."""


def path(environ: Mapping[str, str] = os.environ) -> str:
    """The path of the settings file, which need not exist."""
    return os.path.join(folder(environ, "XDG_CONFIG_HOME", ".config"), "config.toml")


def folder(environ: Mapping[str, str], variable: str, default: str) -> str:
    """The dashboard's folder in an XDG directory; a relative `variable` is ignored, as XDG says."""
    base = environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.join(environ.get("HOME") or os.path.expanduser("~"), default)
    return os.path.join(base, "dibs")


def load(
    flags: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> tuple[Config, dict[str, str]]:
    """The settings and the source of each; a flag is None if it was not given."""
    file = path(environ)
    found: dict[str, object] = {}
    sources = dict.fromkeys(Config._fields, "default")
    data = _read(file)
    for key, value in _table(file, data).items():
        line = line_of(data, key, *_invalid_entry(key, value))
        found[key] = _checked(f"{file}{line}", key, value)
        sources[key] = "config.toml"
    for key, (value, variable) in _of_environment(environ).items():
        found[key] = _checked(f"${variable}", key, value)
        sources[key] = f"${variable}"
    for key, value in flags.items():
        if value is not None:
            flag = f"--{key.replace('_', '-')}"
            found[key] = _checked(flag, key, value)
            sources[key] = flag
    return Config(**found), sources  # type: ignore[arg-type]  # every value was checked


def described(config: Config, sources: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Each setting with its value as TOML and its source."""
    return [(key, _toml(value), sources[key]) for key, value in config._asdict().items()]


def _table(file: str, data: bytes) -> dict[str, Any]:
    """The settings in the data of the file; empty if there is no file."""
    if not data:
        return {}
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except RecursionError:
        raise BadConfig(f"{file}: nested too deeply; correct or remove it") from None
    except ValueError as error:
        raise BadConfig(f"{file}{why_invalid(data, error)}; correct or remove it") from None


def _read(file: str) -> bytes:
    try:
        data = read_plain(file)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise BadConfig(f"{file}: {error.strerror}; make it readable or remove it") from None
    except ValueError as error:
        raise BadConfig(f"{file}: {error}; correct or remove it") from None
    if len(data) > _BYTES:
        raise BadConfig(f"{file}: larger than {_BYTES} bytes; correct or remove it")
    return data


def read_plain(file: str, flags: int = 0) -> bytes:
    """The first 64 KiB of a regular file; ValueError for anything else, and never waits."""
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        return os.read(fd, _BYTES + 1)
    finally:
        os.close(fd)


def _of_environment(environ: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    """The settings in the environment, each with its variable."""
    found: dict[str, tuple[object, str]] = {}
    if environ.get("DIBS_THEME"):
        found["theme"] = (environ["DIBS_THEME"], "DIBS_THEME")
    if environ.get("DIBS_READ_ONLY"):
        word = environ["DIBS_READ_ONLY"].lower()
        found["read_only"] = (_WORDS.get(word, environ["DIBS_READ_ONLY"]), "DIBS_READ_ONLY")
    if "NO_COLOR" in environ:
        found["colour"] = (False, "NO_COLOR")
    return found


_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def _checked(source: str, key: str, value: object) -> object:
    """The value as the dashboard uses it; raises `BadConfig` if it is invalid."""
    if key not in _RULES:
        raise BadConfig(f"{source}: there is no setting {key!r}; {like(key, _RULES)}")
    wanted, rule = _RULES[key]
    try:
        return rule(value)
    except (ValueError, BadName):
        raise BadConfig(f"{source}: {key} must be {wanted}, got {_short(value)}") from None


def _invalid_entry(key: str, value: object) -> tuple[str, ...]:
    """The first entry of a table that is invalid by itself; none if another thing is wrong."""
    if key in ("rights", "keys") and isinstance(value, Mapping):
        for entry in value:
            try:
                _RULES[key][1]({entry: value[entry]})
            except (ValueError, BadName):
                return (entry,)
    return ()


def like(word: str, known: Mapping[str, object]) -> str:
    """Advice for an error: the known word that comes closest, or all of them."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1, 0.6)
    return f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"


def _choice(*words: str) -> tuple[str, Callable[[object], object]]:
    def rule(value: object) -> object:
        if value in words:
            return value
        raise ValueError

    *others, last = (f'"{word}"' for word in words)
    return f"{', '.join(others)} or {last}", rule


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

    return f'{low:g} to {high:.10g} seconds, or a time such as "5s"', rule


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
    if not isinstance(value, Mapping):
        raise ValueError
    found = {_FORMER_RIGHTS.get(str(key), str(key)): allowed for key, allowed in value.items()}
    if not found.keys() <= set(RIGHTS):
        raise ValueError
    if not all(isinstance(allowed, bool) for allowed in found.values()):
        raise ValueError
    return found


def _short(value: object) -> str:
    text = repr(value)
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
    "glyphs": _choice(*GLYPHS),
    "read_only": _TRUTH,
    "bell": _TRUTH,
    "notify": _choice(*NOTIFY),
    "alert_command": ('a list of strings, such as ["notify-send", "dibs"]', _strings),
    "evidence_command": ('a list of strings, such as ["squeue", "-j", "{metadata}"]', _strings),
    "alert_every": _span(1, 86_400),
    "poll": _span(0.2, 60),
    "still": _span(0, 60),
    "waiting_too_long": _span(1, 10 * 365 * 86_400),
    "failing_again": _number(1, 999_999_999),
    "bulk_limit": _number(1, 1_000_000),
    "mouse": _TRUTH,
    "local": _TRUTH,
    "rights": (f"a table of true or false for {', '.join(RIGHTS)}", _rights),
    "keys": ('a table of commands, each with a key such as "f6" or a list of keys', _keys),
}
