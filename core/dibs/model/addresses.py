"""Addresses of boards with passwords: what of them may be shown, and what must not be.

A password may have any letter, also where its owner forgot to write `@` as %40. What of such a text
belongs to the password is then a guess, so everything that may is left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_match_address = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(.*)", re.DOTALL).fullmatch
_control = re.compile(r"[\x00-\x1f\x7f]")
_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_OPTIONS = frozenset(
    (
        *_SECRETS,
        *("host", "hostaddr", "port", "dbname", "user", "passfile", "service", "options"),
        *("application_name", "fallback_application_name", "client_encoding", "channel_binding"),
        *("connect_timeout", "require_auth", "replication", "load_balance_hosts"),
        *("target_session_attrs", "gssencmode", "krbsrvname", "gsslib", "gssdelegation"),
        *("sslmode", "sslnegotiation", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"),
        *("sslcompression", "sslsni", "sslcertmode", "requirepeer", "keepalives"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version", "tcp_user_timeout"),
        *("keepalives_idle", "keepalives_interval", "keepalives_count", "min_protocol_version"),
        *("max_protocol_version", "sslkeylogfile", "scram_client_key", "scram_server_key"),
        *("oauth_issuer", "oauth_client_id", "oauth_scope", "ssl", "passwd"),
    )
)
"""The options of an address. After another word, the text before it may go on."""


class Parts(NamedTuple):
    """An address taken apart, so that its passwords are apart from all else."""

    scheme: str
    user: str
    """With the `@`; empty without a user."""
    password: str | None
    """As the address has it; None without one in front of the host."""
    rest: str
    """The hosts and the path."""
    options: tuple[str, ...]
    """Each with its `=`."""
    doubtful: bool
    """Whether a password has letters that an address must escape, so that it may end elsewhere."""


def split(where: str) -> Parts | None:
    """The parts of an address; None for what is none, such as a path."""
    m = _match_address(where)
    if m is None:
        return None
    scheme, text = m.groups()
    at = text.find("@")
    slash = text.find("/")
    own = -1 if slash != -1 and slash < at else at
    """The end of the user as the server's library reads it."""
    rest, options, unknown = _options(text[own + 1 :])
    end, guessed = own, False
    colon = text.find(":")
    if "@" in rest or (unknown and "@" in text[own + 1 :]) or (own == -1 and _odd_port(rest)):
        last = text.rfind("@")
        if -1 < colon < last:  # else the `@` belongs to no password
            end, guessed = last, True
            rest, options, unknown = _options(text[end + 1 :])
        elif own == -1 and last == -1 and colon > -1:  # no host follows, or the port is no number
            slash = slash if slash != -1 else len(text)
            return Parts(
                scheme, "", text[colon + 1 : slash], text[:colon] + rest[slash:], options, True
            )
    front = text[: max(end, 0)]
    user, found, password = front.partition(":")
    return Parts(
        scheme,
        f"{user}@" if end >= 0 else "",
        password if found else None,
        rest,
        options,
        guessed or any(_is_secret(each) and "&" in each for each in options),
    )


def _options(text: str) -> tuple[str, tuple[str, ...], bool]:
    """What is before the options, the options, and whether one of them has an unknown name."""
    rest, _, query = text.partition("?")
    found: list[str] = []
    unknown = False
    for each in query.split("&") if query else ():
        known = _name(each) in _OPTIONS and "=" in each
        if found and not known and _is_secret(found[-1]):
            found[-1] += f"&{each}"  # a password with an `&`
            continue
        unknown = unknown or not known
        found.append(each)
    return rest, tuple(found), unknown


def _odd_port(rest: str) -> bool:
    """Whether what should be a port is none: the user's name and the password are before a `/`."""
    hosts = re.sub(r"\[[^\]]*\]", "", rest.partition("/")[0])
    ports = [port for host in hosts.split(",") for port in host.split(":")[1:]]
    return not all(port.isdecimal() or not port for port in ports)


def _is_secret(option: str) -> bool:
    return _name(option) in (*_SECRETS, "passwd")


def _name(option: str) -> str:
    return unescaped(option.partition("=")[0]).lower()


def unescaped(text: str) -> str:
    """The text that an address spells so."""
    if "%" not in text:
        return text
    from urllib.parse import unquote  # as slow to import as all of this package

    return unquote(text)


def without_password(where: str) -> str:
    """The address without its passwords; anything else as it is."""
    parts = split(where)
    if parts is None:
        return where
    query = "&".join(each for each in parts.options if not _is_secret(each))
    found = f"{parts.scheme}{parts.user}{parts.rest}{f'?{query}' if query else ''}"
    return found if found.isprintable() else _control.sub(lambda m: f"%{ord(m[0]):02X}", found)


def passwords(where: str) -> list[str]:
    """The passwords in an address, in each spelling, the longest first."""
    parts = split(where)
    if parts is None:
        return []
    found = [each.partition("=")[2] for each in parts.options if _is_secret(each)]
    found.append(parts.password or "")
    return sorted({*found, *map(unescaped, found)} - {""}, key=len, reverse=True)
