"""A client of `dibs mcp` that claims, says what it got, and waits: to be killed by a test."""

from __future__ import annotations

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


def parameters(board: str, *options: str) -> StdioServerParameters:
    """How any client starts the server."""
    args = ["-m", "dibs", "-d", board, "mcp", *options]
    return StdioServerParameters(command=sys.executable, args=args)


async def main(board: str) -> None:
    """Claim, report, and wait for another task until killed."""
    async with Client(parameters(board, "--owner", "doomed")) as client:
        first = await client.call_tool("claim", {"ttl": 1})
        print(json.dumps(first.structured_content), flush=True)
        await client.call_tool("claim", {"wait": 50})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
