"""Requests a second of acquire, renew and release, as a share of a bare aiohttp handler.

python -m tests.serve.load [SECONDS] [FOLDER]
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.serve.server_process import ENV, ServerProcess, add_token

CLIENTS = (1, 10, 100)
ROUNDS = 8
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


class LoadClient:
    """One connection that acquires, renews and releases one lock again and again."""

    def __init__(self, url: str, token: str, name: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._head = f"Host: x\r\nAuthorization: Bearer {token}\r\n"
        self._name = name
        self.times: list[float] = []

    async def run(self, until: float) -> None:
        self._in, self._out = await asyncio.open_connection(self._host, self._port)
        while time.monotonic() < until:
            found = await self._ask("acquire", {"ttl_seconds": 60, "metadata": self._name})
            assert found["status"] == "acquired", found
            lease = {"lease_id": found["lease_id"]}
            assert "lease_id" in await self._ask("renew", lease)
            assert (await self._ask("release", lease))["status"] == "released"
        self._out.close()

    async def _ask(self, verb: str, body: dict[str, object]) -> dict[str, object]:
        data = json.dumps(body).encode()
        head = f"POST /locks/{self._name}/{verb} HTTP/1.1\r\n{self._head}"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        start = time.monotonic()
        self._out.write(head.encode() + data)
        answer = await self._in.readuntil(b"\r\n\r\n")
        at = answer.lower().index(b"content-length:") + 15
        length = int(answer[at : answer.index(b"\r", at)])
        found: dict[str, object] = json.loads(await self._in.readexactly(length))
        self.times.append(time.monotonic() - start)
        return found


async def measured(url: str, token: str, count: int, seconds: float) -> tuple[float, float]:
    """Requests a second, and the 99th percentile of their times in milliseconds."""
    clients = [LoadClient(url, token, f"bench-{n}") for n in range(count)]
    start = time.monotonic()
    await asyncio.gather(*(client.run(start + seconds) for client in clients))
    times = [each for client in clients for each in client.times]
    spent = time.monotonic() - start
    return len(times) / spent, statistics.quantiles(times, n=100)[98] * 1000


def cpu(pid: int) -> float:
    """The seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _compare(
    count: int, seconds: float, bare: tuple[str, int], ours: tuple[str, int], token: str
) -> None:
    """Both in turn in short windows, so that other work on the machine slows down both."""
    rates: dict[int, list[float]] = {bare[1]: [], ours[1]: []}
    slow: dict[int, list[float]] = {bare[1]: [], ours[1]: []}
    used = {pid: cpu(pid) for pid in rates}
    for _ in range(ROUNDS):
        for url, pid in (bare, ours):
            rate, p99 = asyncio.run(measured(url, token, count, seconds / ROUNDS))
            rates[pid].append(rate)
            slow[pid].append(p99)
    ratio = statistics.median(b / a for a, b in zip(rates[bare[1]], rates[ours[1]], strict=True))
    text = f"{count:>4} clients: ratio {ratio:.2f}"
    for name, (_, pid) in (("bare", bare), ("dibs", ours)):
        each = 1e6 * (cpu(pid) - used[pid]) / (statistics.mean(rates[pid]) * seconds)
        text += f"   {name} {statistics.median(rates[pid]):6.0f}/s"
        text += f" p99 {statistics.median(slow[pid]):5.1f} ms, {each:3.0f} us of processor each"
    print(text, flush=True)


def main(seconds: float, folder: str) -> None:
    root = Path(tempfile.mkdtemp(prefix="dibs-load-", dir=folder))
    bare = subprocess.Popen(
        [sys.executable, "-c", BARE], stdout=subprocess.PIPE, text=True, env=ENV
    )
    server = ServerProcess(root / "board")
    try:
        assert bare.stdout is not None
        url = bare.stdout.readline().strip()
        token = add_token(root / "board", "ci")
        asyncio.run(measured(url, token, 10, 0.5))
        asyncio.run(measured(server.url, token, 10, 0.5))
        for count in CLIENTS:
            _compare(count, seconds, (url, bare.pid), (server.url, server.process.pid), token)
    finally:
        bare.terminate()
        bare.wait()
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(
        float(sys.argv[1]) if len(sys.argv) > 1 else 3.0,
        sys.argv[2] if len(sys.argv) > 2 else "/dev/shm",
    )
