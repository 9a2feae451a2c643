"""The routes of what could not be sent to the hooks of the board."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from dibs.serve.bodies import NAMES, TEXT, WHOLE, Field
from dibs.serve.call_rights import Answer
from dibs.serve.deliveries import check_id
from dibs.serve.delivery_access import AT_ONCE, MOST, REMOVE, SEND, FolderDeliveries
from dibs.serve.route_table import READ, RouteCall, route
from dibs.serve.tokens import Role
from dibs.serve.values import plain

if TYPE_CHECKING:
    from dibs.serve.service import Service


def _kept(service: Service) -> FolderDeliveries:
    return FolderDeliveries(service.reads, service.hooks)


def _list(service: Service, call: RouteCall) -> Answer:
    kept, limit = _kept(service), call.given["limit"]
    failed = islice(kept.failed(), limit) if limit else ()
    return {"hooks": plain(kept.hooks()), "failed": [plain(each) for each in failed]}


def _act(service: Service, call: RouteCall) -> Answer:
    given = call.given
    idents = [check_id(ident) for ident in dict.fromkeys(given["ids"])]
    return {"changed": plain(_kept(service).act(given["act"], idents, call.who.owner(call.agent)))}


DELIVERY_ROUTES = (
    route(
        "GET /v1/deliveries",
        Role.READER,
        "The hooks in figures, and what could not be sent to them",
        _list,
        whole=True,
        kind=READ,
        query={"limit": Field(WHOLE, "how many failed deliveries", 0, MOST, default=100)},
        answer={"hooks": "list", "failed": "list"},
    ),
    route(
        "POST /v1/deliveries",
        Role.OPERATOR,
        "Send failed deliveries again with all their tries, or remove them",
        _act,
        whole=True,
        kind=READ,
        body={
            "act": Field(TEXT, "the act", needed=True, words=(SEND, REMOVE)),
            "ids": Field(NAMES, "ids of failed deliveries", 0, AT_ONCE, needed=True),
        },
        answer={"changed": "list"},
        codes=("missing_field", "invalid_field"),
    ),
)
