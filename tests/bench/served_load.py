"""Clients of a server: those that acquire, renew and release, that wait in line, and that watch."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 120.0
"""Seconds in which a thing that is waited for must have happened."""
BARE = """\
import json
from aiohttp import web

async def acquire(request):
    given = await request.json()
    return web.json_response({"status": "acquired", "name": request.match_info["name"],
        "lease_id": "bench-0.f1.ci-0123456789", "fencing_token": 1,
        "expires_at": "2026-01-01T00:00:00.000Z", "renew_after_ms": given["ttl_seconds"] * 333,
        "metadata": given["metadata"]})

async def renew(request):
    given = await request.json()
    return web.json_response({"lease_id": given["lease_id"], "fencing_token": 1,
        "expires_at": "2026-01-01T00:00:00.000Z", "renew_after_ms": 20000})

async def release(request):
    given = await request.json()
    return web.json_response({"status": "released", "name": request.match_info["name"],
        "lease_id": given["lease_id"]})

app = web.Application()
app.router.add_post("/locks/{name}/acquire", acquire)
app.router.add_post("/locks/{name}/renew", renew)
app.router.add_post("/locks/{name}/release", release)
web.run_app(app, host="127.0.0.1", port=0, access_log=None,
    print=lambda text: text.startswith("=") and print(text.split()[3], flush=True))
"""
"""A handler that parses and answers the same JSON, and does nothing."""


class Connection:
    """One connection that stays open."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._head = f"Host: x\r\nAuthorization: Bearer {token}\r\n"

    async def open(self) -> None:
        """Connect."""
        self._in, self._out = await asyncio.open_connection(self._host, self._port)

    def close(self) -> None:
        """End it."""
        self._out.close()

    async def post(self, path: str, body: dict[str, object]) -> dict[str, Any]:
        """The answer to a request with a body."""
        return await self._ask("POST", path, json.dumps(body).encode())

    async def get(self, path: str) -> dict[str, Any]:
        """The answer to a request without one."""
        return await self._ask("GET", path, b"")

    async def _ask(self, method: str, path: str, data: bytes) -> dict[str, Any]:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self._out.write(head.encode() + data)
        answer = await self._in.readuntil(b"\r\n\r\n")
        at = answer.lower().index(b"content-length:") + 15
        length = int(answer[at : answer.index(b"\r", at)])
        found: dict[str, Any] = json.loads(await self._in.readexactly(length))
        return found

    async def follow(self, path: str) -> None:
        """Ask for a stream of events."""
        self._out.write(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())
        await self.seen(b"event: snapshot")

    async def seen(self, text: bytes) -> float:
        """When the stream had this."""
        found = b""
        while text not in found:
            more = await self._in.read(1 << 16)
            assert more, "the stream ended"
            found = found[-len(text) :] + more
        return time.monotonic()


async def cycles(url: str, token: str, clients: int, seconds: float) -> list[float]:
    """Each acquires, renews and releases a lock of its own; the seconds of each request."""
    times: list[float] = []

    async def ask(one: Connection, path: str, body: dict[str, object]) -> dict[str, Any]:
        start = time.monotonic()
        found = await one.post(path, body)
        times.append(time.monotonic() - start)
        return found

    async def client(name: str) -> None:
        one = Connection(url, token)
        await one.open()
        while time.monotonic() < until:
            found = await ask(one, f"/locks/{name}/acquire", {"ttl_seconds": 60, "metadata": name})
            assert found["status"] == "acquired", found
            lease = {"lease_id": found["lease_id"]}
            assert "lease_id" in await ask(one, f"/locks/{name}/renew", lease)
            assert (await ask(one, f"/locks/{name}/release", lease))["status"] == "released"
        one.close()

    until = time.monotonic() + seconds
    await asyncio.gather(*(client(f"bench-{n}") for n in range(clients)))
    return times


async def line(url: str, token: str, waiters: int) -> list[float]:
    """All wait for one lock, each releases it at once: the seconds from a release to the next."""
    freed, gaps = 0.0, []

    async def waiter(n: int) -> None:
        nonlocal freed
        one = Connection(url, token)
        await one.open()
        body: dict[str, object] = {"ttl_seconds": 600, "metadata": f"waiter {n}"}
        found = {"status": "held"}
        while found["status"] == "held":  # a wait has an end
            found = await one.post("/locks/line/acquire", body | {"wait_seconds": 60})
        gaps.append(time.monotonic() - freed)
        freed = time.monotonic()
        await one.post("/locks/line/release", {"lease_id": found["lease_id"]})
        one.close()

    first = Connection(url, token)
    await first.open()
    holder = await first.post("/locks/line/acquire", {"ttl_seconds": 600, "metadata": "first"})
    waiting = [asyncio.ensure_future(waiter(n)) for n in range(waiters)]
    asking = Connection(url, token)
    await asking.open()
    async with asyncio.timeout(PATIENCE):
        while (await asking.get("/status"))["waiting"] < waiters:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    freed = time.monotonic()
    await first.post("/locks/line/release", {"lease_id": holder["lease_id"]})
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*waiting)
    first.close()
    asking.close()
    return gaps


async def watched(url: str, token: str, watchers: int, events: int) -> list[float]:
    """The seconds from the answer to an add until each of the watchers has its event."""
    streams = [Connection(url, token) for _ in range(watchers)]
    for one in streams:
        await one.open()
        await one.follow("/v1/events")
    adder, times = Connection(url, token), list[float]()
    await adder.open()
    for n in range(events):
        ident = f"event-{time.monotonic_ns()}-{n}"
        seen = [asyncio.ensure_future(one.seen(ident.encode())) for one in streams]
        await adder.post("/v1/tasks", {"id": ident})
        start = time.monotonic()
        async with asyncio.timeout(PATIENCE):
            times += [max(0.0, at - start) for at in await asyncio.gather(*seen)]
    for one in (*streams, adder):
        one.close()
    return times
