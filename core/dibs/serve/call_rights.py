"""What a request may concern: ids that its token covers, and claims that its token made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.blocks import ClaimBase
from dibs.model import names
from dibs.model.errors import BadName, short
from dibs.model.task import DONE, FAILED
from dibs.serve.lock_names import RESERVED
from dibs.serve.problems import CODES, Refusal
from dibs.serve.route_table import RouteCall
from dibs.serve.tokens import Role

if TYPE_CHECKING:
    from dibs.model.task import Task
    from dibs.protocols import Claim
    from dibs.serve.service import Service

Answer = dict[str, Any]


def covered(call: RouteCall, ident: str) -> str:
    """The id, if the token's prefix covers it."""
    if not call.who.covers(ident):
        raise Refusal("forbidden", f"the token is only for ids that begin with {call.who.prefix}")
    return ident


def usable(call: RouteCall, ident: str) -> str:
    """The same for an id that is to be made, claimed or locked: none of the server's own."""
    if ident.startswith(RESERVED):
        raise Refusal("reserved_id", f"{short(ident)}: {CODES['reserved_id'].text}")
    return covered(call, ident)


def whole(call: RouteCall) -> None:
    """Refuse a token with a prefix where the whole board is concerned."""
    if call.who.prefix:
        raise Refusal("forbidden", f"this is for the whole board, not only {call.who.prefix}")


def exact_name(call: RouteCall, name: str) -> str:
    """The exact name, if the token's prefix covers its id."""
    for candidate in names.exact(name.partition("/")[0] if _has_rename(name) else name):
        task = names.read_any(candidate)
        if task is not None:
            covered(call, task.id)
    return name


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
    claim = service.board.attach(exact_name(call, call.path["name"]))
    if claim.task.kind == "lock":
        usable(call, claim.task.id)
    if call.who.role < Role.OPERATOR and not own_made(call, claim):
        raise Refusal("forbidden", f"this claim was not made with the token of {call.who.name}")
    _restore_owner(call, claim)
    return claim


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


def named_task(call: RouteCall) -> Task:
    """The task of the exact name in the path, by its name alone."""
    for candidate in names.exact(exact_name(call, call.path["name"])):
        task = names.read_any(candidate)
        if task is not None:
            return task
    raise BadName(f"{short(call.path['name'])} is not the exact name of a task")
