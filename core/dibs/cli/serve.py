"""The verb `serve`: the board over a port."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of
from dibs.model.errors import BadName, NotInstalled, StorageError

if TYPE_CHECKING:
    import ssl

    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.serve.hook_sender import HookSenders

_SDK = ("aiohttp", "yarl", "multidict", "aiosignal", "frozenlist", "propcache")
"""What comes with `dibs[serve]`."""
_LOOPBACK = "127.0.0.1", "::1", "localhost"


def serve(voice: Voice, args: argparse.Namespace) -> int:
    """Serve the board until SIGTERM."""
    if not args.clients:
        raise BadName("--clients must be 1 or more")
    host, port = _address(args.listen)
    tls = _tls(args.tls_cert, args.tls_key)
    if host not in _LOOPBACK and tls is None and not args.behind_proxy:
        raise BadName(
            f"{host} can be reached from other machines: give --tls-cert, or --behind-proxy if a "
            "proxy in front has TLS"
        )
    try:
        from dibs.serve.browser import Browsing
        from dibs.serve.listening import Address, serve
    except ImportError as error:
        raise _why(error) from None
    import asyncio

    from dibs.cli.refusal import fields
    from dibs.cli.say import fields_of
    from dibs.cli.stats import prometheus
    from dibs.serve.service import Wording
    from dibs.serve.tokens import Tokens, folder_of

    board = board_of(args)
    location = board.location
    senders = _senders(board, args)
    folder = folder_of(location, args.tokens)
    tokens = Tokens(folder)
    tokens.check()
    known = tokens.all()
    if not known:
        voice.words("no token is there yet: `dibs token add NAME --role worker` makes one")
        if host not in _LOOPBACK:
            raise BadName(f"{host} can be reached from other machines: add a token first")

    def listening(url: str) -> None:
        voice.result(url, {"status": "listening", "url": url})
        from sys import stdout

        stdout.flush()

    wording = Wording(fields, fields_of, prometheus)
    secure = tls is not None or args.behind_proxy
    pages = Browsing(args.dashboards, args.dashboard_idle, secure) if args.dashboards else None
    address = Address(host, port, tls)
    clients = args.clients
    return asyncio.run(
        serve(location, folder, address, clients, wording, listening, senders, pages)
    )


def _senders(board: Board, args: argparse.Namespace) -> HookSenders:
    """What sends to the hooks of the board's settings; refused if one has no secret."""
    from os import environ

    from dibs.cli.say import complain
    from dibs.serve import deliveries
    from dibs.serve.hook_request import networks_of, secret_of
    from dibs.serve.hook_sender import HookSenders, HookTarget

    hooks = board.settings.hooks
    networks = networks_of(args.hook_network)
    targets = [HookTarget(hook, secret_of(hook.name, environ)) for hook in hooks]
    known = hooks or args.hooks or board.location.folder
    kept = deliveries.place_of(board.location, args.hooks) if known else deliveries.HookPlace("")
    return HookSenders(board.location.where, kept, targets, networks, complain)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise BadName(f"{text!r} is no address: write it as 127.0.0.1:7373")
    return host, int(port)


def _tls(cert: str | None, key: str | None) -> ssl.SSLContext | None:
    """The context for a certificate; None without one."""
    if cert is None:
        if key is not None:
            raise BadName("--tls-key needs --tls-cert")
        return None
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ssl.SSLError) as error:
        raise StorageError(f"{cert}: {error.strerror or error}: give PEM files") from None
    return context


def _no_password() -> str:
    raise BadName("the private key has a password: give one without")


def _why(error: ImportError) -> Exception:
    """What to install; the error itself if it is no matter of aiohttp."""
    from dibs.installed import install_command

    name, how = error.name or "", f"run {install_command('serve')}"
    if name.startswith("dibs.serve"):
        return NotInstalled(f"the server is not in this file: {how}")
    if name.partition(".")[0] not in _SDK:
        return error
    from importlib.util import find_spec

    what = "is not installed" if find_spec("aiohttp") is None else "is too old, or incomplete"
    return NotInstalled(f"`dibs serve` needs aiohttp, which {what}: {how}")
