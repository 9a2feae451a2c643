"""An operator's work in a real browser: log in, look, release a dead worker's task, log out."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import dibs
from tests.patience import PATIENCE
from tests.serve.chromium import PROGRAM, Page, browser
from tests.serve.server_process import ENV, ServerProcess, add_token
from tests.serve.web_terminal import A_FINGER, Drawn

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="NO BROWSER WAS TRIED: chromium-headless-shell is not installed"
)
WORKER = """
import os, signal, sys, dibs
board = dibs.open(sys.argv[1])
here = board.host.process(os.getpid())
claim = board.claim("render-0777", owner="agent-4", ttl=600, process=here)
if os.fork() == 0:  # it outlives its parent, and commits when it is told to
    sys.stdin.read()
    try:
        claim.done(b"1200 frames")
        print("committed", flush=True)
    except dibs.Lost as error:
        print(f"refused: {error}", flush=True)
    os._exit(0)
print("claimed", flush=True)
signal.pause()
"""


class Shown:
    """A page with the dashboard, and what its terminal shows."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows that the page has asked for last."""
        sent = [json.loads(text) for text in self.page.sent]
        (found,) = [one[1] for one in sent if one[0] == "resize"][-1:]
        return found["width"], found["height"]

    @property
    def text(self) -> str:
        """What a person sees there."""
        if not any(text.startswith('["resize"') for text in self.page.sent):
            return ""
        drawn = Drawn(*self.size)
        drawn.feed(b"".join(base64.b64decode(data) for data in self.page.received))
        return drawn.text

    async def shows(self, *words: str) -> None:
        """Wait until it shows all of these."""

        async def all_there() -> bool:
            text = self.text
            return all(word in text for word in words)

        try:
            await self.page.until(all_there, f"{words}")
        except AssertionError:
            raise AssertionError(f"no {words}, size {self.size}:\n{self.text}") from None

    async def press(self, *keys: str) -> None:
        """Type, as fast as a person."""
        for key in keys:
            await asyncio.sleep(A_FINGER)
            await self.page.press(key)

    async def insist(self, key: str, test: Callable[[], bool]) -> None:
        """Press a key until it has an effect: none that follows a change too closely has one."""
        for _ in range(round(PATIENCE)):
            await self.press(key)
            for _ in range(20):
                if test():
                    return
                await asyncio.sleep(0.05)
        raise AssertionError(f"{key} has no effect:\n{self.text}")


def drive(steps: Callable[[Callable[[], Awaitable[Page]]], Awaitable[None]]) -> None:
    """Take these steps in a browser of its own."""

    async def main() -> None:
        async with browser() as tab:
            await steps(tab)

    asyncio.run(main())


async def log_in(page: Page, token: str) -> None:
    """Type a token into the form."""
    await page.click("#token")
    await page.type(token)
    await page.press("Enter")


def test_a_dead_workers_task_is_released_and_its_late_commit_refused(
    server: ServerProcess,
) -> None:
    board = dibs.open(server.board)
    board.add("render-0777", b"scene harbour/dawn.usd", priority=9)
    for n in range(30):
        board.add(f"mail-{n:04}")
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(server.board)],
        env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert worker.stdout.readline() == "claimed\n"
    worker.kill()
    worker.wait(PATIENCE)
    token = add_token(server.board, "olga", "operator")

    async def steps(tab: Callable[[], Awaitable[Page]]) -> None:
        page = await tab()
        await page.resize(1200, 800)
        await page.open(server.url)
        await log_in(page, "dibs_wrong")
        await page.has("document.querySelector('.why').innerText === 'This token is not valid.'")
        await log_in(page, token)
        shown = Shown(page)
        await shown.shows("render-0777", "mail-0000", "? help")

        await shown.press("/", *"id~mail-0007", "Enter")
        await shown.shows("mail-0007")
        await page.until(lambda: lacks(shown, "mail-0011"), "the filter hides other rows")
        await shown.press("Escape")
        await shown.shows("mail-0011")

        await shown.press("8")
        await shown.shows("DEAD", "render-0777")
        await shown.press("Enter")
        await shown.shows("scene harbour/dawn.usd")
        await shown.press("Escape")
        await shown.shows("X release")
        await shown.insist("X", lambda: "Release" in shown.text)
        await shown.insist("y", lambda: board.find("render-0777")[0].state == "available")

        width, _ = shown.size
        await page.resize(800, 600)
        await page.until(lambda: has(shown.size[0] < width), "the terminal has another size")
        await shown.shows("? help")

        await page.click("header button")
        await page.has("document.querySelector('#token') !== null")
        assert all(re.match(rf"(http|ws)://127\.0\.0\.1:{server.port}/", u) for u in page.requests)
        assert not [text for text in page.complaints if "WebGL" not in text and "401" not in text]

    drive(steps)
    out, _ = worker.communicate(timeout=PATIENCE)
    assert out.startswith("refused: ")
    (task,) = board.find("render-0777")
    assert task.state == "available"
    released = [event for event in board.log.of("render-0777") if event.verb == "force-release"]
    assert released
    assert all(event.by.startswith("olga") for event in released)


async def lacks(shown: Shown, word: str) -> bool:
    return word not in shown.text


async def has(truth: bool) -> bool:
    return truth


def test_a_page_too_many_says_so(scratch: Path) -> None:
    server = ServerProcess(scratch / "board", "--dashboards", "1")
    token = add_token(server.board, "olga", "operator")

    async def steps(tab: Callable[[], Awaitable[Page]]) -> None:
        first, second = await tab(), await tab()
        await first.open(server.url)
        await log_in(first, token)
        await Shown(first).shows("? help")
        await second.open(server.url)
        await second.has("document.querySelector('#why').innerText.startsWith('All 1 dashboards')")
        await first.open("about:blank")
        await second.click("#again")
        await second.has("document.body.classList.contains('-first-byte')")
        await Shown(second).shows("? help")
        await Shown(second).press("q")
        await second.has("document.querySelector('#why').innerText === 'The dashboard was closed.'")

    try:
        drive(steps)
    finally:
        assert server.stop() == 0
