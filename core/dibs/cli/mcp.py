"""The verb `mcp`: serve the board to one agent, over standard input and output."""

from __future__ import annotations

import argparse
import errno
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of
from dibs.cli.stdio import closed, unwritten
from dibs.model.errors import DibsError, NotInstalled

if TYPE_CHECKING:
    from dibs.cli.say import Voice

_SDK = ("mcp", "mcp_types", "anyio", "pydantic")
"""What comes with `dibs[mcp]`."""


def serve(voice: Voice, args: argparse.Namespace) -> int:
    """Serve the board until the client leaves."""
    try:
        from dibs.mcp.server import BoardServer, serve
    except ImportError as error:
        raise _why(error) from None
    import dibs
    from dibs.cli.refusal import fields
    from dibs.shipped import text

    location = board_of(args).location
    if 1 in closed:
        return unwritten(OSError(errno.EBADF, "closed"))

    def refusal(error: DibsError) -> dict[str, object]:
        """An error as fields; the agent may be anywhere, so its commands name the board."""
        return fields(error) | {"error": location.runnable(str(error))}

    page = text("AGENTS.md")
    trouble = serve(BoardServer(location, args.owner, page, refusal), dibs.__version__)
    return 0 if trouble is None else unwritten(trouble, acted=True)


def _why(error: ImportError) -> Exception:
    """What to install; the error itself if it is no matter of the SDK."""
    from dibs.installed import install_command

    name, how = error.name or "", f"run {install_command('mcp')}"
    if name.startswith("dibs.mcp"):
        return NotInstalled(f"`dibs mcp` is not in this file: {how}")
    if name.partition(".")[0] not in _SDK:
        return error
    from importlib.util import find_spec

    what = "is not installed" if find_spec("mcp") is None else "is too old, or incomplete"
    return NotInstalled(f"`dibs mcp` needs mcp, which {what}: {how}")
