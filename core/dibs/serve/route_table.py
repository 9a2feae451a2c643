"""The form of the table of routes: what each request takes, who may send it, what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from dibs.serve.bodies import Fields
from dibs.serve.problems import Refusal
from dibs.serve.tokens import Role

if TYPE_CHECKING:
    from dibs.serve.tokens import Principal

VERB, READ, WAIT, STREAM, OPEN = "verb", "read", "wait", "stream", "open"
"""Where a request is done: in the thread of verbs, in that of long reads, again and again until it
succeeds or its time is up, as a stream of events, or without a token."""
PATH_BYTES = 2048
_match_part = re.compile(r"\{([a-z]+)\}").fullmatch
_is_encoded = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*").fullmatch


NONE: Mapping[str, Any] = MappingProxyType({})


class RouteCall(NamedTuple):
    """One request: who asks, and what was given, all of it checked."""

    who: Principal
    agent: str | None
    path: Mapping[str, str]
    given: Mapping[str, Any]
    """The fields of the body, or the parameters of the query."""
    mark: str = ""
    """With what the name of a new claim ends, from the X-Request-Key; else it is any."""


class Made(NamedTuple):
    """An answer that gives away a new claim."""

    answer: dict[str, Any]
    claim: str
    """The exact name of the claim."""
    undo: Callable[[], object]
    """Releases it if no one reads the answer, unless the board shows that someone has it."""


class Route(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    """With `{name}` for each part that a request fills in."""
    role: Role
    """The least role that may send it."""
    text: str
    run: Callable[[Any, RouteCall], Any] | None = None
    """Does it; a stream and what is open have their own code."""
    body: Fields = NONE
    query: Fields = NONE
    answer: Mapping[str, str] = NONE
    """The fields of the answer with their kinds: `?` after a field that may be missing, and after a
    kind that may be null."""
    codes: tuple[str, ...] = ()
    """The codes with which it may be refused, besides those of every request."""
    kind: str = VERB
    frees: bool = False
    """Whether others may claim or acquire something after it: those who wait try again."""
    status: int = 200
    many: str = ""
    """The name of a part of the path that may have several segments; empty if none."""
    long: bool = False
    """Whether it may take longer than one step, because it does many."""
    whole: bool = False
    """Whether it is about the complete board, so that a token with a prefix is refused."""


def route(
    line: str,
    role: Role,
    text: str,
    run: Callable[[Any, RouteCall], Any] | None = None,
    **more: Any,
) -> Route:
    """A route from a line such as `POST /locks/{name}/acquire`."""
    method, _, path = line.partition(" ")
    return Route(method, path, role, text, run, **more)


class RouteTable:
    """Finds the route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._by_shape: dict[tuple[str, ...], dict[str, Route]] = {}
        self._begins: set[tuple[str, ...]] = set()
        self._many: dict[tuple[str, str], dict[str, Route]] = {}
        """By the first segment and the last, which is empty if the part of many is the last."""
        self._at: dict[str, list[tuple[int, str]]] = {}
        """Where the parts of each path are."""
        for one in self.routes:
            segments = one.path[1:].split("/")
            found = [(at, m[1]) for at, each in enumerate(segments) if (m := _match_part(each))]
            self._at[one.path] = found
            if one.many:
                last = "" if _match_part(segments[-1]) else segments[-1]
                self._many.setdefault((segments[0], last), {})[one.method] = one
            else:
                shape = tuple("{}" if _match_part(each) else each for each in segments)
                self._by_shape.setdefault(shape, {})[one.method] = one
                self._begins |= {shape[:end] for end in range(len(shape) + 1)}

    def find(self, method: str, raw: str) -> tuple[Route, dict[str, str]]:
        """The route of a path that is still percent-encoded, with the parts of the path."""
        segments = raw[1:].split("/")
        wrong = "%" in raw and _is_encoded(raw) is None
        if len(raw) > PATH_BYTES or raw[:1] != "/" or wrong:
            raise Refusal("invalid_path", f"a path must have at most {PATH_BYTES} valid bytes")
        methods, parts = self._by_shape.get(tuple(segments)), segments
        many = (segments[0], "") in self._many
        if methods is None and not many:
            methods = self._with_parts(segments)
        elif methods is None and len(segments) > 1:
            last = segments[-1] if (segments[0], segments[-1]) in self._many else ""
            methods = self._many.get((segments[0], last if len(segments) > 2 else ""))
            if methods is not None:
                end = len(segments) - bool(last and len(segments) > 2)
                parts = [segments[0], "/".join(segments[1:end])]
        if methods is None:
            raise Refusal("not_found", "there is nothing at this path: see /v1/openapi.json")
        found = methods.get("GET" if method == "HEAD" else method)
        if found is None:
            allowed = ", ".join(sorted(methods))
            message = f"this path takes {allowed}"
            raise Refusal("method_not_allowed", message, {"allow": sorted(methods)})
        return found, {name: _part(name, parts[at]) for at, name in self._at[found.path]}

    def _with_parts(self, segments: list[str]) -> dict[str, Route] | None:
        """The routes of a path with parts; a segment that is written out comes first."""
        shapes: list[tuple[str, ...]] = [()]
        for each in segments:
            shapes = [(*shape, word) for shape in shapes for word in (each, "{}")]
            shapes = [shape for shape in shapes if shape in self._begins]
        return next((self._by_shape[shape] for shape in shapes if shape in self._by_shape), None)


def _part(name: str, segment: str) -> str:
    """A part of a path; the name of a lock is checked by itself."""
    found = segment
    if "%" in segment:
        found = unquote_to_bytes(segment).decode("utf-8", "surrogateescape")
    if name != "name" and not found:
        raise Refusal("invalid_path", f"the {name} in the path is empty")
    return found
