"""`board.toml`: the few things that a board may want otherwise."""

from __future__ import annotations

from typing import Any, NamedTuple

from dibs.errors import BadName, NotABoard, short
from dibs.records import TTL_MAX, TTL_MIN

FORMAT = 2
TOML_BYTES = 65_536
OFF, NORMAL, STRICT = "off", "normal", "strict"


class Settings(NamedTuple):
    """A board's settings with their defaults."""

    ttl: float = 120
    """Seconds of silence after which a claim is stale, where the claimant named none."""
    plain_ttl: float = 600
    """The same for claims made with nothing but `mv`."""
    max_attempts: int = 5
    """Expiries and failures after which a task is parked in `failed/`."""
    durability: str = NORMAL
    """`normal`: add, done and failed survive a power cut; `strict`: every step; `off`: none."""
    reap_dead: bool = True
    """A claim whose recorded process has ended for sure is given back before its ttl."""


def load(data: bytes) -> Settings:
    """The settings of a `board.toml`, or the one line that says what is wrong with it."""
    if data == dump(Settings()):  # as `init` writes it: no parser is needed
        return Settings()
    import tomllib  # only boards with settings of their own pay for it

    if len(data) > TOML_BYTES:
        raise NotABoard(f".dibs/board.toml is larger than {TOML_BYTES} bytes; mend or remove it")
    try:
        table = tomllib.loads(data.decode())
    except RecursionError:
        raise NotABoard(".dibs/board.toml is nested too deeply; mend or remove it") from None
    except ValueError as error:
        raise NotABoard(f".dibs/board.toml cannot be read: {error}; mend or remove it") from None
    found = table.pop("format", FORMAT)
    if type(found) is not int or found > FORMAT:
        raise NotABoard(
            f".dibs/board.toml says format {found!r}, this dibs knows {FORMAT}: update dibs"
        )
    return Settings(**{key: _checked(key, value) for key, value in table.items()})


def dump(settings: Settings) -> bytes:
    """A `board.toml` with these settings."""
    lines = [f"format = {FORMAT}"]
    for key, value in settings._asdict().items():
        shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
        lines.append(f"{key} = {shown}")
    return ("\n".join(lines) + "\n").encode()


def check_ttl(ttl: float) -> float:
    """The ttl itself, once it is known to be one."""
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not TTL_MIN <= ttl <= TTL_MAX:
        raise BadName(f"a ttl must be {TTL_MIN} to {TTL_MAX} seconds, not {short(ttl)}")
    return ttl


def _checked(key: str, value: Any) -> Any:
    match key, value:
        case (("ttl" | "plain_ttl"), (int() | float())) if not isinstance(value, bool):
            if TTL_MIN <= value <= TTL_MAX:
                return value
            wanted = f"{TTL_MIN} to {TTL_MAX} seconds"
        case (("ttl" | "plain_ttl"), _):
            wanted = f"{TTL_MIN} to {TTL_MAX} seconds"
        case "max_attempts", _:
            if type(value) is int and 1 <= value <= 999_999_999:
                return value
            wanted = "a whole number from 1"
        case "durability", _:
            if value in (OFF, NORMAL, STRICT):
                return value
            wanted = f'"{OFF}", "{NORMAL}" or "{STRICT}"'
        case "reap_dead", _:
            if isinstance(value, bool):
                return value
            wanted = "true or false"
        case _:
            known = ", ".join(Settings._fields)
            raise NotABoard(f".dibs/board.toml: there is no setting {key!r}; there are {known}")
    raise NotABoard(f".dibs/board.toml: {key} must be {wanted}, not {value!r}")
