"""The settings of a board, as `board.toml` has them."""

from contextlib import suppress
from typing import Any, NamedTuple

from dibs.model.errors import BadName, BadSettings, NewerFormat, short
from dibs.model.records import TTL_MAX, TTL_MIN

FORMAT = 2
TOML_BYTES = 65_536
SPAN_MAX = 36_500 * 86_400
"""The longest time that a setting may give, in seconds."""
_FILE = ".dibs/board.toml"
_FIX = "correct or remove it"
_DELAYS = 32
"""The most delays that `retry` may have."""
MANY = 1000
"""The most tasks that are claimed together."""
OFF, NORMAL, STRICT = "off", "normal", "strict"


class Settings(NamedTuple):
    """A board's settings and their defaults.

    >>> board.settings.ttl, board.settings.max_attempts
    (120, 5)
    """

    ttl: float = 120
    """The lease in seconds if a worker gives none."""
    plain_ttl: float = 600
    """The lease of shell claims, which are made with `mv`."""
    max_attempts: int = 5
    """Attempts (failures and expiries) after which a task moves to `failed/`."""
    durability: str = NORMAL
    """What survives a power cut. `normal`: add, done, failed; `strict`: all; `off`: nothing."""
    reap_dead: bool = True
    """Whether a claim is reaped before its ttl once its process has exited."""
    retry: tuple[float, ...] = (1, 10, 60, 600)
    """The seconds that a task waits after its first failure, its second and so on; the last one
    repeats. Empty: failed tasks are available at once."""
    run_log: int = 0
    """How many bytes of each command's output `dibs run` keeps; 0 keeps none."""
    run_timeout: float = 0
    """Seconds after which `dibs run` ends a command; 0 for no limit."""
    run_idle: float = 0
    """Seconds without output and notes after which `dibs run` ends a command; 0 for no limit."""
    keep_logs: float = 604_800
    """Seconds for which the output of earlier attempts is kept."""
    hooks: tuple[Any, ...] = ()
    """The hooks that `dibs serve` sends events to, each a `dibs.model.hooks.Hook`."""


DEFAULT_TOML = b"""\
format = 2
ttl = 120
plain_ttl = 600
max_attempts = 5
durability = "normal"
reap_dead = true
retry = ["1s", "10s", "1m", "10m"]
"""
"""The file that `init` writes."""


def load(data: bytes, file: str = _FILE) -> Settings:
    """The settings in a `board.toml`; raises an error that names the line and the fix."""
    if data == DEFAULT_TOML:  # saves the import of a parser
        return Settings()
    import tomllib  # imported only for changed settings

    if len(data) > TOML_BYTES:
        raise BadSettings(f"{file} is larger than {TOML_BYTES} bytes: {_FIX}")
    try:
        table = tomllib.loads(data.decode())
    except RecursionError:
        raise BadSettings(f"{file} is nested too deeply: {_FIX}") from None
    except ValueError as error:
        raise BadSettings(f"{file}{why_invalid(data, error)}: {_FIX}") from None
    found = table.pop("format", FORMAT)
    if type(found) is not int or found > FORMAT:
        raise NewerFormat(
            f"{file}{line_of(data, 'format')}: this dibs knows format {FORMAT}, got {found!r}: "
            "update dibs"
        )
    return Settings(**{key: _checked(data, key, value, file) for key, value in table.items()})


def why_invalid(data: bytes, error: ValueError) -> str:
    """What is wrong in a file of TOML, as the words after its name in an error."""
    if "overwrite" in str(error):  # the parser does not name the key that is there twice
        found: dict[str, int] = {}
        for number, line in enumerate(data.decode().split("\n"), 1):
            key, equals, _ = line.partition("=")
            if line.lstrip().startswith("["):
                found = {}
            elif equals and (first := found.setdefault(key.strip(), number)) != number:
                return f" line {number}: {key.strip()} is already set on line {first}"
    return f" is not valid TOML: {error}"


def dump(settings: Settings) -> bytes:
    """A `board.toml` with these settings."""
    lines = [f"format = {FORMAT}"]
    defaults, written = Settings(), DEFAULT_TOML.decode()
    for key, value in settings._replace(hooks=())._asdict().items():
        if value == getattr(defaults, key) and f"\n{key} = " not in written:
            continue  # an earlier dibs does not know it
        shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
        if isinstance(value, tuple):
            times = ", ".join(f'"{_time(each)}"' for each in value)
            shown = f"[{times}]"
        lines.append(f"{key} = {shown}")
    for hook in settings.hooks:
        import json

        lines += ["", "[[hooks]]"]
        for key, value in hook._asdict().items():
            texts = [_time(each) for each in value] if key == "retry" else value
            lines.append(f"{key} = {json.dumps(texts)}")
    return ("\n".join(lines) + "\n").encode()


def check_ttl(ttl: float) -> float:
    """The ttl, if it is valid; else `BadName`."""
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not TTL_MIN <= ttl <= TTL_MAX:
        raise BadName(f"ttl must be {TTL_MIN} to {TTL_MAX} seconds, got {_plain(ttl)}")
    return ttl


def check_count(count: int) -> int:
    """The number of tasks to claim together, if it is valid; else `BadName`."""
    if type(count) is not int or not 1 <= count <= MANY:
        raise BadName(f"a count must be 1 to {MANY:,}, got {short(count)}")
    return count


def check_wait(wait: float) -> float:
    """The seconds to wait, if they are valid; else `BadName`."""
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
        raise BadName(f"wait must be 0 or more seconds, got {_plain(wait)}")
    return wait


def _checked(data: bytes, key: str, value: Any, file: str) -> Any:
    match key, value:
        case (("ttl" | "plain_ttl"), _):
            found = _span(value)
            if found is not None and TTL_MIN <= found <= TTL_MAX:
                return found
            wanted = f'{TTL_MIN} to {TTL_MAX} seconds, or a time such as "5m"'
        case "max_attempts", _:
            if type(value) is int and 1 <= value <= 999_999_999:
                return value
            wanted = "a number of at least 1"
        case "durability", _:
            if value in (OFF, NORMAL, STRICT):
                return value
            wanted = f'"{OFF}", "{NORMAL}" or "{STRICT}"'
        case "reap_dead", _:
            if isinstance(value, bool):
                return value
            wanted = "true or false"
        case "retry", _:
            times = _times(value)
            if times is not None:
                return times
            wanted = f'a list of times up to a day, such as ["10s", "5m"], at most {_DELAYS}'
        case (("run_timeout" | "run_idle" | "keep_logs"), _):
            if (found := _span(value)) is not None:
                return found
            wanted = 'a time such as 90, "90s" or "2h", at most 36500d'
        case "hooks", _:
            return _hooks(data, value, file)
        case "run_log", _:
            from dibs.model.outputs import check_log_bytes, size

            with suppress(BadName):
                return size(value) if isinstance(value, str) else check_log_bytes(value)
            wanted = '0, or 4096 to 1073741824 bytes, such as "1M"'
        case _:
            known = ", ".join(Settings._fields)
            raise BadSettings(
                f"{file}{line_of(data, key)}: there is no setting {key!r}: use one of {known}"
            )
    raise BadSettings(f"{file}{line_of(data, key)}: {key} must be {wanted}, got {value!r}")


def _hooks(data: bytes, value: object, file: str) -> tuple[Any, ...]:
    """The hooks, each with a name of its own."""
    from dibs.model import hooks

    if not isinstance(value, list) or len(value) > hooks.MOST:
        most = f"at most {hooks.MOST} tables [[hooks]]"
        raise BadSettings(f"{file}{line_of(data, 'hooks')}: hooks must be {most}")
    found: list[hooks.Hook] = []
    for number, table in enumerate(value):
        try:
            given = table.get("retry") if isinstance(table, dict) else None
            hook = hooks.hook_of(table, hooks.RETRY if given is None else _times(given))
            if any(hook.name == other.name for other in found):
                raise BadName(f"there are two hooks {hook.name}: give each a name of its own")
        except BadName as error:
            raise BadSettings(f"{file}{_line_of_hook(data, number)}: hooks: {error}") from None
        found.append(hook)
    return tuple(found)


def _line_of_hook(data: bytes, number: int) -> str:
    """The line at which the table of a hook begins; empty if it is not found."""
    import re

    lines = enumerate(data.decode().split("\n"), 1)
    heads = [at for at, line in lines if re.match(r"\s*\[\[\s*hooks\s*\]\]", line)]
    return f" line {heads[number]}" if number < len(heads) else line_of(data, "hooks")


def _times(value: Any) -> tuple[float, ...] | None:
    """The delays of a list in seconds; None if one of them is not a time up to a day."""
    from dibs.model.delays import LONGEST
    from dibs.model.filters import seconds

    if not isinstance(value, list) or len(value) > _DELAYS:
        return None
    try:
        found = tuple(seconds(each) for each in value if isinstance(each, str))
    except BadName:
        return None
    fits = len(found) == len(value) and all(each <= LONGEST for each in found)
    return found if fits else None


def _time(delay: float) -> str:
    """A delay as the settings have it, in the largest unit that needs no fraction."""
    for unit, size in (("h", 3600), ("m", 60)):
        if delay and delay % size == 0:
            return f"{delay // size:g}{unit}"
    return f"{delay:g}s"


def _span(value: object) -> float | None:
    """A number of seconds, or a time with its unit; None for anything else."""
    from dibs.model.filters import seconds

    with suppress(BadName):
        found = seconds(value) if isinstance(value, str) else value
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return found if 0 <= found <= SPAN_MAX else None
    return None


def line_of(data: bytes, *keys: str) -> str:
    """The line that sets a key or, with two, an entry of a table, as an error names it.

    An entry that has no line of its own has that of its table; empty if none is found.
    """
    table: list[str] = []
    for number, line in enumerate(data.decode().split("\n"), 1):
        head = line.strip()
        if head.startswith("["):
            table = found = _path(head.strip("[]"))
        else:
            found = [*table, *_path(line.partition("=")[0])]
        if found[: len(keys)] == list(keys):
            return f" line {number}"
    return line_of(data, *keys[:-1]) if len(keys) > 1 else ""


def _path(dotted: str) -> list[str]:
    """The parts of a dotted key."""
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _plain(value: object) -> str:
    """A number without a needless `.0`; anything else as errors quote it."""
    return f"{value:g}" if type(value) is float else short(value)
