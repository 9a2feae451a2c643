"""What a request may concern: ids that its token covers, and claims that its token made."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dibs.blocks import ClaimBase
from dibs.model import names
from dibs.model.errors import BadName, NotExact, short
from dibs.model.task import DONE, FAILED
from dibs.serve.bodies import TEXT, Field
from dibs.serve.lock_names import RESERVED, check_lock_name, id_of
from dibs.serve.problems import CODES, Refusal
from dibs.serve.route_table import RouteCall
from dibs.serve.tokens import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dibs.model.task import Task
    from dibs.protocols import Claim
    from dibs.serve.route_table import Route
    from dibs.serve.service import Service
    from dibs.serve.tokens import Principal

Answer = dict[str, Any]
NONCE = Field(TEXT, "ten digits or letters A to F; with the same again it succeeds", 10, 10)
"""For what has a key: by it another server finds what it has done."""


def check_rights(route: Route, who: Principal, path: Mapping[str, str]) -> None:
    """Refuse a token whose role or prefix does not allow a route with these parts of the path.

    No route checks its path again, so each part of a path has its rule in `_PARTS`.
    """
    if who.role < route.role:
        raise Refusal(
            "forbidden", f"this needs the role {route.role.word}, and {who.name} is not one"
        )
    if route.whole:
        _whole(who)
    for part, text in path.items():
        head, _, _ = route.path.partition(f"{{{part}}}")
        _PARTS[head](who, text)


def about(call: RouteCall) -> str:
    """The id that a request is about; empty if it is not about a given one."""
    name = call.path.get("name") or call.given.get("lease") or call.given.get("name") or ""
    if not name:
        return str(call.path.get("id") or call.given.get("id") or "")
    with suppress(NotExact, BadName):
        for candidate in names.exact(name):
            task = names.read_any(candidate)
            if task is not None:
                return task.id
    with suppress(Refusal):
        return id_of(check_lock_name(name))
    return str(name)


def covered(call: RouteCall, ident: str) -> str:
    """The id, if the token's prefix covers it."""
    return _covered(call.who, ident)


def _covered(who: Principal, ident: str) -> str:
    if not who.covers(ident):
        raise Refusal("forbidden", f"the token is only for ids that begin with {who.prefix}")
    return ident


def usable(call: RouteCall, ident: str) -> str:
    """The same for an id that is to be made, claimed or locked: none of the server's own."""
    if ident.startswith(RESERVED):
        raise Refusal("reserved_id", f"{short(ident)}: {CODES['reserved_id'].text}")
    return covered(call, ident)


def whole(call: RouteCall) -> None:
    """Refuse a token with a prefix where what was given concerns the complete board."""
    _whole(call.who)


def _whole(who: Principal) -> None:
    if who.prefix:
        raise Refusal("forbidden", f"this is for the complete board, not only {who.prefix}")


def exact_name(call: RouteCall, name: str) -> str:
    """The exact name, if the token's prefix covers its id."""
    return _exact_name(call.who, name)


def _exact_name(who: Principal, name: str) -> str:
    candidates = names.exact(name.partition("/")[0] if _has_rename(name) else name)
    idents = [task.id for task in map(names.read_any, candidates) if task is not None]
    for ident in idents or [""]:  # a prefix covers no text that is not a name
        _covered(who, ident)
    return name


def _lock_name(who: Principal, name: str) -> str:
    return _covered(who, check_lock_name(name))


def _session(who: Principal, session: str) -> str:
    return session  # its owner is the token, which `Sessions.find` checks


def _has_rename(name: str) -> bool:
    """Whether it names a claim made with `mv`, which has the time of its rename after a slash."""
    head, slash, _ = name.partition("/")
    return bool(slash) and head not in (DONE, FAILED, ".dibs")


def owner_of(call: RouteCall) -> str:
    """The owner of a claim; only an operator's token may give any name."""
    given = call.given.get("owner")
    if given is not None and call.who.role >= Role.OPERATOR:
        return str(given)
    return call.who.owner(given if given is not None else call.agent)


def named_owner(call: RouteCall) -> str | None:
    """The same; a worker without a name has that of its host, for which an operator's has None."""
    given = call.given
    if given["owner"] is not None or not given["host"]:
        return owner_of(call)
    return None if call.who.role >= Role.OPERATOR else call.who.owner(given["host"])


def own_claim(service: Service, call: RouteCall) -> Claim:
    """The claim of that exact name; a worker's token must have made it."""
    claim = service.board.attach(call.path["name"])
    if claim.task.kind == "lock":
        usable(call, claim.task.id)
    if call.who.role < Role.OPERATOR and not own_made(call, claim):
        raise Refusal("forbidden", f"this claim was not made with the token of {call.who.name}")
    _restore_owner(call, claim)
    return claim


def ended_before(service: Service, call: RouteCall, claim: Claim, verb: str) -> Task | None:
    """What a request with the same key has made of a claim over another server, by the log."""
    if not call.mark or claim.record.host:  # without a key, or it is still there
        return None
    for event in reversed(service.board.log.of(claim.id)):
        before = names.read_any(event.src) if event.verb == verb else None
        if before is not None and before.stem == claim.name:
            return event.after
    return None


def _restore_owner(call: RouteCall, claim: Claim) -> None:
    """Name the owner of a claim that is gone as its record did, for the log's line about it."""
    record, folded = claim.record, names.fold_owner(call.who.name)
    if isinstance(claim, ClaimBase) and not record.host and record.owner.startswith(f"{folded}-"):
        agent = record.owner[len(folded) + 1 :]
        exact = call.who.owner(call.agent)
        whose = exact if names.fold_owner(exact) == record.owner else f"{call.who.name}/{agent}"
        claim.record = record._replace(owner=whose)


def own_made(call: RouteCall, claim: Claim) -> bool:
    """Whether a claim was made with this token; one that has ended has only its exact name left."""
    record, folded = claim.record, names.fold_owner(call.who.name)
    if record.host:
        return call.who.owns(record.owner)
    return record.owner == folded or record.owner.startswith(f"{folded}-")


def named_task(call: RouteCall, given: str | None = None) -> Task:
    """The task of an exact name, or of the one in the path, by its name alone."""
    name = call.path["name"] if given is None else exact_name(call, given)
    for candidate in names.exact(name):
        task = names.read_any(candidate)
        if task is not None:
            return task
    raise BadName(f"{short(name)} is not the exact name of a task")


_PARTS: Mapping[str, Callable[[Principal, str], str]] = {
    "/locks/": _lock_name,
    "/sessions/": _session,
    "/v1/locks/": _covered,
    "/v1/tasks/": _covered,
    "/v1/claims/": _exact_name,
    "/v1/names/": _exact_name,
}
"""What the part of a path names, by what is before that part."""
