"""Makes the picture of the dashboard in a browser: python -m screenshots.browser

Everything is real: the workers of the demo, the server, a login, and the page in Chromium.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.serve.chromium import PROGRAM, browser
from tests.serve.server_process import ServerProcess, add_token
from tests.serve.test_in_chromium import Shown, log_in

from dibs_tui.demo.crew import Crew

PICTURE = Path(__file__).with_name("browser.png")
_ADDRESS = "127.0.0.1:7373"
_LIVELY = 40.0
"""Seconds after which the demo has something of everything."""


async def _look(server: ServerProcess, token: str) -> bytes:
    async with browser("--window-size=1280,760", "--force-device-scale-factor=1.25") as tab:
        page = await tab()
        await page.open(server.url)
        await log_in(page, token)
        shown = Shown(page)
        await shown.shows("? help", "stale")
        await asyncio.sleep(3)
        picture: bytes = await page.picture()
        return picture


def main() -> None:
    """Run the demo behind a server, and save the picture."""
    if PROGRAM is None:
        sys.exit("chromium is not installed: apt-get install chromium-headless-shell")
    with Crew() as crew:
        board = Path(crew.path)
        server = ServerProcess(board, listen=_ADDRESS)
        try:
            asyncio.run(asyncio.sleep(_LIVELY))
            PICTURE.write_bytes(asyncio.run(_look(server, add_token(board, "olga", "operator"))))
        finally:
            server.stop()
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
