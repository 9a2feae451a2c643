"""How this dibs was installed, so that a message names the command that can add to it."""

from __future__ import annotations

import os
import sys
from typing import Any

from dibs.model.safe_text import shell_line

CHECKOUT = "in a checkout of dibs"


def install_command(extra: str = "") -> str:
    """The command that installs dibs with an extra where this one is, in backticks."""
    source = _source()
    what = f"{source or '.'}{f'[{extra}]' if extra else ''}"
    place = "" if source else f" {CHECKOUT}"
    return f"`{shell_line([*_installer(), what])}`{place}"


def _installer() -> list[str]:
    """The words that install into the environment of this process."""
    if not os.path.isdir(_package()):  # dibs.pyz, into which nothing can be installed
        return ["uv", "tool", "install"]
    prefix = sys.prefix
    if os.path.exists(os.path.join(prefix, "uv-receipt.toml")):
        return ["uv", "tool", "install"]
    if os.path.exists(os.path.join(prefix, "pipx_metadata.json")):
        return ["pipx", "install", "--force"]
    if prefix == sys.base_prefix:
        return [sys.executable or "python3", "-m", "pip", "install"]
    pip = os.path.join(prefix, "bin", "pip")
    if os.path.exists(pip):
        return [pip, "install"]
    return ["uv", "pip", "install", "--python", sys.executable]


def _source() -> str:
    """What this dibs was installed from: a directory, or its name in an index; empty if unknown."""
    checkout = os.path.dirname(os.path.dirname(_package()))
    if os.path.exists(os.path.join(checkout, "pyproject.toml")):  # editable, or not installed
        return checkout
    if not os.path.isdir(_package()):
        return ""
    from importlib.metadata import Distribution, PackageNotFoundError

    try:
        found = Distribution.from_name("dibs").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    return _directory(found) if found is not None else "dibs"


def _directory(direct_url: str) -> str:
    """The directory of a `direct_url.json`, if it is still there."""
    import json
    from urllib.parse import unquote, urlsplit

    try:
        fields: Any = json.loads(direct_url)
        url = urlsplit(str(fields["url"]))
    except (ValueError, KeyError, TypeError):
        return ""
    path = unquote(url.path)
    there = url.scheme == "file" and os.path.exists(os.path.join(path, "pyproject.toml"))
    return path if there else ""


def _package() -> str:
    return os.path.dirname(os.path.abspath(str(sys.modules["dibs"].__file__)))
