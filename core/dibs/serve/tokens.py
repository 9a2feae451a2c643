"""Tokens: who may ask the server for what. A board keeps only their hashes.

Each token is one small file in a folder, so that adding and removing one is atomic without a lock.
A token is 256 random bits, so one round of SHA-256 is a safe hash of it.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import IntEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.errors import BadName, Exists, UnknownId, short, storage_error
from dibs.model.names import check_words

if TYPE_CHECKING:
    from dibs.model.location import Location

FOLDER = os.path.join(".dibs", "tokens")
BEGIN = "dibs_"
"""How each token begins, so that scanners for leaked secrets can know it."""
_FILE_BYTES = 4096
_PREFIX_CHARS = 256
_RACY = 100_000_000
"""Nanoseconds after a change of the folder in which another change may leave the same time."""
_WRITTEN_BY_OTHERS, _USED_BY_OTHERS = 0o022, 0o077
"""The bits of a mode with which others may write; with which they may do anything at all."""
_match_name = re.compile(r"[A-Za-z0-9_-]{1,40}").fullmatch
_match_hash = re.compile(r"[0-9a-f]{64}").fullmatch


class Role(IntEnum):
    """What a token may do; each role may also do what the lower ones may."""

    READER = 1
    """Looks, and follows."""
    WORKER = 2
    """Adds tasks, claims and locks."""
    OPERATOR = 3
    """Acts on the claims and tasks of others."""

    @property
    def word(self) -> str:
        """The role as people write it."""
        return self.name.lower()


ROLES = tuple(role.word for role in Role)


class Principal(NamedTuple):
    """Who asks: the token that was given, without its text."""

    name: str
    role: Role
    prefix: str
    """Its ids and names of locks must begin with this text; empty for all."""
    hash: str
    at: float = 0.0
    """When the token was made, in unix seconds."""

    def covers(self, ident: str) -> bool:
        """Whether it may use that id or name of a lock."""
        return ident.startswith(self.prefix)

    def owner(self, agent: str | None) -> str:
        """The owner that its claims have: its own name, and the agent's if one is named."""
        if not agent or agent == self.name or agent.startswith(f"{self.name}/"):
            return agent or self.name
        return f"{self.name}/{agent}"

    def owns(self, owner: str) -> bool:
        """Whether a claim with that owner was made with this token."""
        return owner == self.name or owner.startswith(f"{self.name}/")


def folder_of(location: Location, given: str | None) -> str:
    """Where the tokens of a board are: the folder that was given, else one below its `.dibs`."""
    if given is not None:
        return os.path.abspath(given)
    if not location.folder:
        raise BadName(
            f"{location.label} is no directory that could keep tokens: give one with --tokens DIR"
        )
    return os.path.join(location.folder, FOLDER)


def hash_of(token: str) -> str:
    """The hash under which a token is kept."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """The tokens in a folder; each look costs one `stat` while nothing has changed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.trouble = ""
        """Why some of them, or all, are not accepted now; empty if all are."""
        self._known: dict[str, Principal] = {}
        self._stamp: tuple[int, ...] | None = None

    def check(self) -> None:
        """Refuse a folder or a token that other users could have written, or could read."""
        if os.path.lexists(self.folder) and not os.path.isdir(self.folder):
            raise BadName(f"{self.folder} is no folder: give one with --tokens DIR")
        self._refresh()
        if self.trouble:
            raise BadName(self.trouble)

    def add(self, name: str, role: Role, prefix: str = "") -> str:
        """Make a token; its text is returned once and kept nowhere."""
        _check_name(name)
        check_words("a prefix", prefix)
        if len(prefix) > _PREFIX_CHARS:
            raise BadName(f"a prefix must have at most {_PREFIX_CHARS} characters")
        token = BEGIN + secrets.token_urlsafe(32)
        fields = {"v": 1, "role": role.word, "prefix": prefix, "sha256": hash_of(token)}
        fields["at"] = round(time.time(), 3)
        path, draft = self._path(name), self._path(f".{secrets.token_hex(8)}")
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            try:
                _write(draft, json.dumps(fields).encode() + b"\n")
                os.link(draft, path)  # unlike a rename, it replaces nothing
            except FileExistsError:
                raise Exists(f"there is a token {name!r} already: remove it first") from None
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft)
            _sync(self.folder)
        except OSError as error:
            raise storage_error(error) from error
        return token

    def remove(self, name: str) -> None:
        """Revoke a token; servers refuse it from their next request on."""
        _check_name(name)
        try:
            os.unlink(self._path(name))
            _sync(self.folder)
        except FileNotFoundError:
            raise UnknownId(f"there is no token {name!r}: `dibs token ls` lists them") from None
        except OSError as error:
            raise storage_error(error) from error

    def all(self) -> list[Principal]:
        """Every valid token, by name."""
        self._refresh()
        return sorted(self._known.values())

    def find(self, digest: str) -> Principal | None:
        """The token with that hash, if it is not revoked; compared in constant time."""
        self._refresh()
        found = None
        for kept, principal in self._known.items():
            if hmac.compare_digest(kept, digest):
                found = principal
        return found

    def still_valid(self, digest: str) -> bool:
        """Whether a token that `find` has found is not revoked since; it costs no comparisons."""
        self._refresh()
        return digest in self._known

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _refresh(self) -> None:
        """Read the folder again if it has changed; a folder that cannot be read has no tokens."""
        try:
            stat = os.stat(self.folder)
        except OSError:
            self._known, self._stamp, self.trouble = {}, None, ""
            return
        stamp = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)
        if stamp == self._stamp:
            return
        found = {}
        self.trouble = why_unsafe(self.folder, stat, _WRITTEN_BY_OTHERS)
        with suppress(OSError):
            for name in os.listdir(self.folder) if not self.trouble else ():
                try:
                    principal = _read(os.path.join(self.folder, name), name)
                except BadName as error:
                    self.trouble = str(error)
                    continue
                if principal is not None:
                    found[principal.hash] = principal
        self._known = found
        fresh = time.time_ns() - stat.st_mtime_ns < _RACY
        self._stamp = None if fresh else stamp


def why_unsafe(path: str, stat: os.stat_result, bits: int) -> str:
    """Why a file or folder cannot be trusted, with what to do; empty if it can."""
    if stat.st_uid not in (os.geteuid(), 0):
        return (
            f"{path} belongs to another user (uid {stat.st_uid}): `chown` it to uid {os.geteuid()}"
        )
    if stat.st_mode & bits:
        what = "read or changed" if bits == _USED_BY_OTHERS else "changed"
        return f"{path} can be {what} by other users: `chmod go-rwx {shlex.quote(path)}`"
    return ""


def _check_name(name: str) -> None:
    if _match_name(name) is None:
        raise BadName(
            f"a token's name must have 1 to 40 letters, digits, - or _, got {short(name)}"
        )


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems sync no folders
            os.fsync(fd)
    finally:
        os.close(fd)


def _read(path: str, name: str) -> Principal | None:
    """The token in a file; None if it is not valid, `BadName` if others could have written it."""
    if _match_name(name) is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            unsafe = why_unsafe(path, os.fstat(fd), _USED_BY_OTHERS)
            if unsafe:
                raise BadName(unsafe)
            fields: Any = json.loads(os.read(fd, _FILE_BYTES))
        finally:
            os.close(fd)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(fields, Mapping):
        return None
    match fields:
        case {"v": 1, "role": str(role), "prefix": str(prefix), "sha256": str(digest)}:
            if role not in ROLES or _match_hash(digest) is None:
                return None
        case _:
            return None
    at = fields.get("at")
    made = float(at) if isinstance(at, int | float) and 0 <= at < 2**36 else 0.0
    return Principal(name, Role[role.upper()], prefix, digest, made)
