"""What a server refuses, as the errors that the engine behind it raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dibs.model import errors, names
from dibs.model.errors import BadName, DibsError, short
from dibs.remote.addresses import HOW

if TYPE_CHECKING:
    from dibs.model.task import Task
    from dibs.remote.sessions import RemoteSession

_PLAIN: Mapping[str, type[DibsError]] = {
    "uncertain": errors.Uncertain,
    "refused": errors.Refused,
    "exists": errors.Exists,
    "unknown_id": errors.UnknownId,
    "read_only": errors.ReadOnly,
    "board_missing": errors.BoardMissing,
    "not_a_board": errors.NotABoard,
    "storage_error": errors.StorageError,
    "not_exact": errors.NotExact,
    "empty": errors.NothingToClaim,
    "bad_name": BadName,
    "unsupported": BadName,
    **{f"invalid_{what}": BadName for what in ("field", "ttl", "metadata", "query", "header")},
    "missing_field": BadName,
    "body_too_large": BadName,
}
_HELD = {"held": errors.Held, "not_due": errors.NotDue, "asked": errors.Asked}


class Busy(Exception):
    """The server asks for a later try; nothing was done."""


def too_long(what: str, length: int) -> BadName:
    """The error for what does not fit into one request."""
    return BadName(
        f"{what or 'the request'} takes {length:,} bytes, and a server takes at most 1 MiB: put it "
        "elsewhere, and its address here"
    )


def error_of(session: RemoteSession, status: int, found: Mapping[str, object]) -> Exception:
    """The error for a refusal."""
    text, code, given = found.get("error"), found.get("code"), found.get("details")
    if not isinstance(text, str) or not isinstance(code, str):
        return session.foreign(f"it answered {status}", found)
    details: Mapping[str, Any] = given if isinstance(given, dict) else {}
    label = session.label
    if code in ("busy", "shutting_down"):
        return Busy(text)
    if code == "unauthorized":
        return errors.NotAllowed(
            f"{label} refused the token, which is wrong or was revoked: ask its operator for one "
            f"and {HOW}"
        )
    if code == "forbidden":
        return errors.NotAllowed(f"{label}: {text}: ask its operator for a token that may")
    if code in _HELD:
        return _held(session, _HELD[code], text, details)
    if code == "paused":
        from dibs.model.pauses import Pause

        return errors.Paused(text, session.value(Pause, details, "pause"))
    if code in ("changed", "lost"):
        kind = errors.Changed if code == "changed" else errors.Lost
        return kind(text, _text(details, "name"), _now(details))
    if code == "unclaimable":
        return errors.Unclaimable(text, _text(details, "name"))
    if code == "internal":
        what = getattr(found, "what", "")
        why = f"{label}: {text}: see the log of the server"
        doubt = f"{what}: it is unknown whether it was done: {why}"
        return errors.Uncertain(doubt) if what else errors.StorageError(why)
    made = _PLAIN.get(code)
    if made is None:
        return session.foreign(f"{code}: {short(text)}", found)
    error = made(text)
    if isinstance(error, errors.StorageError):
        error.name = _text(details, "name")
        error.again = details.get("again") is True
    return error


def _held(
    session: RemoteSession, kind: type[errors.Held], text: str, details: Mapping[str, Any]
) -> errors.Held:
    task = names.read_any(_text(details, "name"))
    if task is None:
        raise session.foreign("its refusal names no holder")
    numbers = [_number(details.get(key)) for key in ("remaining", "retry")]
    error = kind(
        text, task, _text(details, "owner"), numbers[0], _text(details, "metadata"), numbers[1]
    )
    error.slots = int(_number(details.get("slots"))) or 1
    return error


def _now(details: Mapping[str, Any]) -> tuple[Task, ...]:
    """What there is instead."""
    rows = details.get("now")
    found = [row.get("name") for row in rows if isinstance(row, dict)] if rows else []
    return tuple(task for name in found if isinstance(name, str) and (task := names.read_any(name)))


def _text(details: Mapping[str, Any], key: str) -> str:
    found = details.get(key)
    return found if isinstance(found, str) else ""


def _number(value: object) -> float:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**40
    return float(value) if fits else 0.0  # type: ignore[arg-type]
