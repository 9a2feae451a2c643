"""Where a served board is: its address, and the token that a client shows there."""

from __future__ import annotations

import os
import re
import stat
from typing import NamedTuple

from dibs.model.errors import BadName, short
from dibs.model.location import Location

_match_address = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?"
    r"((?:/[A-Za-z0-9._~-]+)*)/*",
    re.IGNORECASE,
).fullmatch
_match_token = re.compile(r"[\x21-\x7e]{1,512}").fullmatch
_TOKEN_BYTES = 4096
HOW = "give it in DIBS_TOKEN, or in a file that DIBS_TOKEN_FILE names"


class ServerAddress(NamedTuple):
    """The address of a server."""

    tls: bool
    host: str
    port: int
    path: str
    """What comes before the paths of dibs; empty unless a proxy has the server below a path."""

    @property
    def url(self) -> str:
        """The address in its shortest form."""
        usual = self.port == (443 if self.tls else 80)
        port = "" if usual else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{self.authority}{port}{self.path}"

    @property
    def authority(self) -> str:
        """The host as an address has it."""
        return f"[{self.host}]" if ":" in self.host else self.host


def address_of(where: str) -> ServerAddress:
    """The address in a location; `BadName` if it is not one of a server."""
    m = _match_address(where)
    port = int(m[3] or (443 if m[1].lower() == "https" else 80)) if m else 0
    if m is None or not 0 < port < 65_536:
        if "@" in where or "?" in where:  # what follows may be secret
            raise BadName(
                "the address of a server has no user, password or options: "
                f"write it as http://HOST:PORT; for the token, {HOW}"
            )
        raise BadName(f"{short(where)} is no address of a server: write it as http://HOST:PORT")
    return ServerAddress(m[1].lower() == "https", m[2].strip("[]").lower(), port, m[4])


def location_of(where: str) -> Location:
    """The location of a served board; its payloads are not files on this host."""
    url = address_of(where).url
    return Location(url, url)


def token() -> str:
    """The token of this user: from the environment, or from a file that only they can read."""
    found, path = os.environ.get("DIBS_TOKEN", ""), os.environ.get("DIBS_TOKEN_FILE", "")
    source = "DIBS_TOKEN"
    if not found and path:
        found, source = _from_file(path), path
    found = found.strip()
    if not found:
        raise BadName(f"there is no token for the server: ask its operator for one and {HOW}")
    if _match_token(found) is None:
        raise BadName(f"{source} has no valid token: it is one word that begins with dibs_")
    return found


def _from_file(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) or about.st_uid not in (0, os.geteuid()):
                raise BadName(f"{path}: the file of the token must be a plain file of this user")
            if about.st_mode & 0o077:
                raise BadName(f"{path}: others can read the token: run `chmod 600` on it")
            return os.read(fd, _TOKEN_BYTES).decode("ascii", "replace")
        finally:
            os.close(fd)
    except OSError as error:
        raise BadName(
            f"{path}: {error.strerror}: DIBS_TOKEN_FILE must name a file that can be read"
        ) from None
