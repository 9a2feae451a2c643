"""A headless browser, driven over the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp

from tests.patience import PATIENCE

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.requests: list[str] = []
        """The address of everything that was asked for."""
        self.sent: list[str] = []
        self.received: list[str] = []
        """The messages of its websocket; those that it received are base64."""
        self.complaints: list[str] = []
        """What the browser wrote into its console."""
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            found = json.loads(message.data)
            params = found.get("params", {})
            if "id" in found:
                self._answers.pop(found["id"]).set_result(found)
            elif found["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                self.requests.append(params.get("url") or params["request"]["url"])
                if found["method"] == "Network.webSocketCreated":
                    self.sent, self.received = [], []
            elif found["method"] == "Network.webSocketFrameSent":
                self.sent.append(params["response"]["payloadData"])
            elif found["method"] == "Network.webSocketFrameReceived":
                if params["response"]["opcode"] == 2:
                    self.received.append(params["response"]["payloadData"])
            elif found["method"] == "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            elif found["method"] == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(params["exceptionDetails"]))

    async def do(self, method: str, **params: Any) -> Any:
        """One command of the protocol."""
        number = len(self._answers) + time.monotonic_ns() % 2**30
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        found = await asyncio.wait_for(answer, PATIENCE)
        assert "error" not in found, found
        return found["result"]

    async def value(self, script: str) -> Any:
        """What an expression is on the page."""
        done = await self.do(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        return done["result"].get("value")

    async def until(self, test: Callable[[], Any], what: str) -> Any:
        """What a test returns, as soon as it is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(AssertionError):  # the page may be changing just now
                if found := await test():
                    return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"it did not come: {what}; the page has {await self.text()!r}")

    async def open(self, url: str) -> None:
        """Go to an address."""
        await self.do("Page.navigate", url=url)
        await self.has("document.readyState === 'complete'")

    async def has(self, script: str) -> Any:
        """Wait until an expression is true."""
        return await self.until(lambda: self.value(script), script)

    async def text(self) -> str:
        """All that the page says."""
        return str(await self.value("document.body.innerText"))

    async def type(self, text: str) -> None:
        """Insert text as if it were typed."""
        await self.do("Input.insertText", text=text)

    async def press(self, key: str) -> None:
        """One key."""
        code = {"Enter": 13, "Escape": 27, "Tab": 9}.get(key, 0)
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        how = {"key": key, "windowsVirtualKeyCode": code, "text": text}
        await self.do("Input.dispatchKeyEvent", type="keyDown", **how)
        await self.do("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def click(self, selector: str) -> None:
        """Click the middle of an element."""
        place = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y, width, height = await self.has(f"(b => [b.x, b.y, b.width, b.height])({place})")
        x, y = x + width / 2, y + height / 2
        for kind in ("mousePressed", "mouseReleased"):
            await self.do(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def resize(self, width: int, height: int) -> None:
        """Give the page another size."""
        await self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=0, mobile=False,
        )  # fmt: skip

    async def picture(self) -> bytes:
        """What the page looks like, as PNG."""
        found = await self.do("Page.captureScreenshot", format="png")
        return base64.b64decode(found["data"])


@asynccontextmanager
async def browser(*more: str) -> AsyncIterator[Callable[[], Awaitable[Page]]]:
    """A browser, perhaps with more flags; what it gives opens a tab."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(prefix="dibs-chromium-", ignore_cleanup_errors=True) as home:
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
        process = await asyncio.create_subprocess_exec(
            PROGRAM, *flags, *more, f"--user-data-dir={home}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        async with aiohttp.ClientSession() as session:
            line = b""
            while not line.startswith(b"DevTools listening on "):
                line = await asyncio.wait_for(process.stderr.readline(), PATIENCE)
                assert line, "the browser did not start"
            drain = asyncio.ensure_future(process.stderr.read())
            url = line.decode().split()[-1]
            root = Page(await session.ws_connect(url, max_msg_size=0))

            async def tab() -> Page:
                made = await root.do("Target.createTarget", url="about:blank")
                where = f"{url.partition('/browser/')[0]}/page/{made['targetId']}"
                page = Page(await session.ws_connect(where, max_msg_size=0))
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await page.do(f"{domain}.enable")
                return page

            try:
                yield tab
            finally:
                with suppress(Exception):
                    await root.do("Browser.close")  # the launcher may not be the browser
                await asyncio.wait_for(process.wait(), PATIENCE)
                drain.cancel()
