"""Which requests a token may send, by what their routes declare."""

from __future__ import annotations

from dibs.serve.route_table import Route
from dibs.serve.tokens import Role


def is_allowed(route: Route, role: Role, prefix: str, inside: bool) -> bool:
    """Whether such a token may send that request, by what the route declares."""
    covered = inside or "{" not in route.path or route.path.startswith("/sessions/")
    return role >= route.role and (not prefix or (covered and not route.whole))


def parts_of(path: str, ident: str) -> dict[str, str]:
    """The parts of a path that name this id."""
    exact = path.startswith(("/v1/claims/", "/v1/names/"))
    text = f"{ident}.f1.a-0123456789.held" if exact else ident
    return {part: text for part in ("id", "name") if f"{{{part}}}" in path}
