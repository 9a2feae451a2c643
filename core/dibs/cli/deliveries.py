"""The verb `deliveries`: what `dibs serve` could not send to a hook."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of
from dibs.model.errors import NotInstalled

if TYPE_CHECKING:
    from dibs.cli.say import Voice


def deliveries(voice: Voice, args: argparse.Namespace) -> int:
    """List the failed deliveries, send them again, or remove them."""
    try:
        from dibs.serve.delivery_verb import run
    except ModuleNotFoundError:  # in dibs.pyz, which has no server
        from dibs.installed import install_command

        why = f"`dibs deliveries` is not in this file: run {install_command('serve')}"
        raise NotInstalled(why) from None
    return run(voice, board_of(args), args.act, args.id, args.hooks, every=args.all)
