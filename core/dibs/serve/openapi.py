"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dibs.serve.problems import CODES
from dibs.serve.route_table import OPEN, STREAM, Route

_KINDS: dict[str, dict[str, object]] = {
    "text": {"type": "string"},
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "list": {"type": "array"},
    "object": {"type": "object"},
}
_ALWAYS = ("bad_request", "invalid_path", "internal", "shutting_down")
_WITH_TOKEN = (
    *("unauthorized", "forbidden", "invalid_header", "storage_error", "board_missing"),
    *("not_a_board", "read_only", "uncertain", "busy", "bad_name"),
)
_WITH_BODY = (
    *("invalid_json", "unknown_field", "body_too_large", "timeout", "request_key_reused"),
    *("invalid_query", "encoded_body"),
)
_find_parts = re.compile(r"\{([a-z]+)\}").findall


def document(routes: Iterable[Route]) -> dict[str, object]:
    """The document; its order is that of the routes."""
    import dibs

    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dibs serve", "version": dibs.__version__},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Refusal": _refusal()},
        },
    }


def codes_of(route: Route) -> list[str]:
    """Every code with which a route may be refused."""
    found = [*_ALWAYS]
    if route.kind != OPEN:
        found += _WITH_TOKEN
        found += _WITH_BODY if route.method == "POST" else ("invalid_query",)
    return list(dict.fromkeys((*found, *route.codes)))


def _operation(route: Route) -> dict[str, object]:
    found: dict[str, object] = {"summary": route.text, "operationId": _operation_id(route)}
    found["security"] = [] if route.kind == OPEN else [{"token": []}]
    if route.kind != OPEN:
        found["x-role"] = route.role.word
    parameters: list[dict[str, object]] = [
        {"name": part, "in": "path", "required": True, "schema": _part(route, part)}
        for part in _find_parts(route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": field.needed, "schema": field.schema}
        for name, field in route.query.items()
    ]
    if parameters:
        found["parameters"] = parameters
    if route.method == "POST":
        schema: dict[str, object] = {
            "type": "object",
            "properties": {name: field.schema for name, field in route.body.items()},
            "additionalProperties": False,
        }
        needed = [name for name, field in route.body.items() if field.needed]
        schema |= {"required": needed} if needed else {}
        content = {"application/json": {"schema": schema}}
        found["requestBody"] = {"required": bool(needed), "content": content}
    return found | {"responses": _responses(route)}


def _part(route: Route, part: str) -> dict[str, object]:
    if route.many == part:
        return {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9._/-]+$"}
    return {"type": "string", "minLength": 1, "maxLength": 512}


def _responses(route: Route) -> dict[str, object]:
    found: dict[str, object] = {str(route.status): _success(route)}
    by_status: dict[int, list[str]] = {}
    for code in codes_of(route):
        by_status.setdefault(CODES[code].status, []).append(code)
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    for status, codes in sorted(by_status.items()):
        found[str(status)] = {"description": ", ".join(codes), "content": content}
    if route.path == "/health":
        found["503"] = _success(route)
    return found


def _success(route: Route) -> dict[str, object]:
    if route.status == 204:
        return {"description": "done"}
    if route.kind == STREAM:
        schema: dict[str, object] = {"type": "string"}
        return {"description": "events", "content": {"text/event-stream": {"schema": schema}}}
    if not route.answer:
        return {"description": "text", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {
        "description": "done",
        "content": {"application/json": {"schema": answer_schema(route)}},
    }


def answer_schema(route: Route) -> dict[str, object]:
    """The JSON schema of an answer, which names every field that it may have."""
    properties = {}
    for name, kind in route.answer.items():
        schema = dict(_KINDS[kind.removesuffix("?")])
        if kind.endswith("?"):
            schema["type"] = [schema["type"], "null"]
        properties[name.removesuffix("?")] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in route.answer if not name.endswith("?")],
        "additionalProperties": False,
    }


def _refusal() -> dict[str, object]:
    text: dict[str, object] = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "error": text,
            "code": text | {"enum": list(CODES)},
            "details": {"type": "object"},
            "request_id": text,
            "retry_after_ms": {"type": "integer"},
        },
        "required": ["error", "code", "details", "request_id"],
        "additionalProperties": False,
    }


def _operation_id(route: Route) -> str:
    words = re.findall(r"[A-Za-z0-9]+", route.path)
    return "_".join([route.method.lower(), *words])
