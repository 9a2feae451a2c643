"""The table of all routes. The server, the reference and the OpenAPI document follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.serve.delivery_routes import DELIVERY_ROUTES
from dibs.serve.listing_routes import LISTING_ROUTES
from dibs.serve.lock_routes import LOCK_ROUTES
from dibs.serve.log_routes import LOG_ROUTES
from dibs.serve.operator_routes import OPERATOR_ROUTES
from dibs.serve.route_table import OPEN, READ, RouteCall, route
from dibs.serve.task_routes import TASK_ROUTES
from dibs.serve.tokens import Role

if TYPE_CHECKING:
    from dibs.serve.service import Service


def _status(service: Service, call: RouteCall) -> dict[str, object]:
    return service.status(call.who)


def _metrics(service: Service, call: RouteCall) -> str:
    return service.wording.metrics(service.reads)


GENERAL_ROUTES = (
    route(
        "GET /health",
        Role.READER,
        "Try the storage; 503 if it does not answer",
        kind=OPEN,
        answer={"healthy": "flag", "storage": "text"},
    ),
    route(
        "GET /v1/openapi.json",
        Role.READER,
        "This interface as an OpenAPI document",
        kind=OPEN,
        answer={"openapi": "text", "info": "object", "paths": "object", "components": "object"},
    ),
    route(
        "GET /status",
        Role.READER,
        "Show the server, the board and who asks",
        _status,
        answer={
            "version": "text",
            "board": "text",
            "name": "text",
            "role": "text",
            "prefix": "text?",
            "uptime_seconds": "number",
            "locks_held": "whole",
            "waiting": "whole",
        },
    ),
    route(
        "GET /metrics",
        Role.READER,
        "Print the figures of the board for Prometheus",
        _metrics,
        whole=True,
        kind=READ,
    ),
)
ROUTES = (
    *GENERAL_ROUTES,
    *LOCK_ROUTES,
    *TASK_ROUTES,
    *LISTING_ROUTES,
    *LOG_ROUTES,
    *OPERATOR_ROUTES,
    *DELIVERY_ROUTES,
)
