"""What a request is refused with: a finite list of codes, each with one status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.errors import (
    Asked,
    BadName,
    BoardMissing,
    Changed,
    DibsError,
    Exists,
    Held,
    Lost,
    NotABoard,
    NotDue,
    NotExact,
    NothingToClaim,
    NotInstalled,
    Paused,
    ReadOnly,
    Refused,
    StorageError,
    Uncertain,
    Unclaimable,
    UnknownId,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Code(NamedTuple):
    """One code of the list."""

    status: int
    text: str


CODES = {
    "bad_request": Code(400, "the request is not HTTP/1.1, or its head is too long"),
    "invalid_path": Code(400, "the path is not valid"),
    "invalid_query": Code(400, "a parameter of the query is unknown, repeated or not valid"),
    "invalid_header": Code(400, "X-Agent, X-Request-Key or Last-Event-ID is not valid"),
    "invalid_json": Code(400, "the body is not one JSON object"),
    "unknown_field": Code(400, "the body has a field that this request does not take"),
    "missing_field": Code(400, "the body lacks a field that this request needs"),
    "invalid_field": Code(400, "a field of the body is not valid"),
    "invalid_ttl": Code(400, "a ttl is not a whole number of seconds within its bounds"),
    "invalid_metadata": Code(400, "the metadata is no text, or too long"),
    "invalid_lock_name": Code(400, "the name of a lock is not valid"),
    "invalid_lock_delay": Code(400, "the lock delay is not a whole number from 0 to 30"),
    "bad_name": Code(400, "an id, owner, time or other value cannot be used"),
    "not_exact": Code(400, "an id was given where the exact name is needed"),
    "unauthorized": Code(401, "there is no token, or it is wrong or revoked"),
    "forbidden": Code(403, "the token's role or prefix does not allow this"),
    "reserved_id": Code(403, "ids that begin with session~ or hook~ are for the server alone"),
    "not_found": Code(404, "there is nothing at this path"),
    "unknown_id": Code(404, "no task or lock has this id, or no token or pause this name"),
    "session_not_found": Code(404, "the session has ended, or never was"),
    "method_not_allowed": Code(405, "the path takes other methods: see Allow"),
    "timeout": Code(408, "the body did not arrive in time"),
    "lease_not_current": Code(409, "the lease is not the holder's, or not any more: stop"),
    "delayed": Code(409, "the last lease expired, and its lock delay is not over"),
    "name_in_use": Code(409, "the name is that of a task"),
    "request_key_reused": Code(409, "another request had this X-Request-Key"),
    "lost": Code(409, "the claim is no longer the caller's: stop working on it"),
    "changed": Code(409, "the exact name is gone; `details.now` is what there is instead"),
    "refused": Code(409, "nothing was done; the message says why"),
    "exists": Code(409, "the id, or the name that this would make, is taken"),
    "held": Code(409, "another worker has it"),
    "not_due": Code(409, "the task starts later"),
    "asked": Code(409, "the task waits for a person's answer"),
    "paused": Code(409, "new claims are paused"),
    "unclaimable": Code(409, "this task cannot be claimed; others can"),
    "empty": Code(409, "no task is available"),
    "body_too_large": Code(413, "the body is longer than 1 MiB"),
    "encoded_body": Code(415, "the body has a Content-Encoding: send it as plain JSON"),
    "internal": Code(500, "a fault of the server"),
    "unsupported": Code(501, "this kind of board cannot do that"),
    "uncertain": Code(503, "the board did not answer in time whether it was done"),
    "storage_error": Code(503, "the board's storage failed; it was not done"),
    "board_missing": Code(503, "there is no board at its place now"),
    "not_a_board": Code(503, "what is at the board's place cannot be used"),
    "read_only": Code(503, "the board cannot be written"),
    "busy": Code(503, "too many requests wait; try again later"),
    "shutting_down": Code(503, "the server ends; ask again"),
}
"""Every code that an answer may have, with its status."""

_OF_ERRORS: tuple[tuple[type[DibsError], str], ...] = (
    (NotDue, "not_due"),
    (Asked, "asked"),
    (Held, "held"),
    (Paused, "paused"),
    (NothingToClaim, "empty"),
    (Lost, "lost"),
    (Uncertain, "uncertain"),
    (Exists, "exists"),
    (UnknownId, "unknown_id"),
    (Changed, "changed"),
    (Refused, "refused"),
    (Unclaimable, "unclaimable"),
    (ReadOnly, "read_only"),
    (BoardMissing, "board_missing"),
    (NotABoard, "not_a_board"),
    (StorageError, "storage_error"),
    (NotExact, "not_exact"),
    (NotInstalled, "unsupported"),
    (BadName, "bad_name"),
)
"""The code of each error of a board; a subclass comes before its base."""


class Refusal(Exception):
    """A request that is refused, with its code."""

    def __init__(
        self,
        code: str,
        message: str,
        details: Mapping[str, object] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.retry_after_ms = retry_after_ms

    @property
    def status(self) -> int:
        """The status of the answer."""
        return CODES[self.code].status

    def fields(self, request_id: str) -> dict[str, object]:
        """The body of the answer."""
        found: dict[str, object] = {"error": self.message, "code": self.code}
        found |= {"details": self.details, "request_id": request_id}
        if self.retry_after_ms is not None:
            found["retry_after_ms"] = self.retry_after_ms
        return found


def code_of(error: DibsError) -> str:
    """The code of an error of the board."""
    return next((code for kind, code in _OF_ERRORS if isinstance(error, kind)), "internal")


def problem_of(error: DibsError, fields: Callable[[DibsError], Mapping[str, object]]) -> Refusal:
    """An error of the board as a refusal; `fields` are its details."""
    from dibs.serve.values import plain, task_fields

    code = code_of(error)
    details = {k: v for k, v in fields(error).items() if k not in ("status", "error")}
    if isinstance(error, Held):
        details["name"] = error.task.name
    elif isinstance(error, Changed | Lost | StorageError) and error.name:
        details["name"] = error.name
    if code == "storage_error" and error.again:
        details["again"] = True
    if isinstance(error, Changed | Lost):
        details["now"] = [task_fields(task) for task in error.now]
    if isinstance(error, Paused):
        details["pause"] = plain(error.pause)
    retry: int | None = None
    if isinstance(error, Held):
        retry = round(error.retry * 1000)
    elif CODES[code].status == 503 or code == "paused":
        retry = 1000
    return Refusal(code, str(error), details, retry)


def unauthorized() -> Refusal:
    """The problem of a request without a valid token."""
    return Refusal("unauthorized", "give a valid token: Authorization: Bearer TOKEN")
