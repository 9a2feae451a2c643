"""The metadata hook of the package: its README for an index, and its addresses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!#|[a-z]+:)([^)\s]+)\)")


class Readme(MetadataHookInterface):  # type: ignore[misc]
    """Adds the README and, once `source-url` is set in pyproject.toml, the project's addresses."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields that pyproject.toml calls dynamic."""
        text = Path(self.root, "README.md").read_text()
        url = self.config["source-url"].rstrip("/")
        tag = f"v{metadata['version']}"
        if url:
            text = absolute(text, url, tag)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = addresses(url, tag)


def addresses(url: str, tag: str) -> dict[str, str]:
    """The addresses that an index shows; none without a repository."""
    if not url:
        return {}
    return {
        "Source": url,
        "Documentation": f"{url}/blob/{tag}/README.md#documentation",
        "Changelog": f"{url}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }


def absolute(text: str, url: str, tag: str) -> str:
    """The text with every link to a file of the repository as an address of that version."""

    def there(found: re.Match[str]) -> str:
        image, label, path = found.groups()
        return f"{image}{label}({url}/{'raw' if image else 'blob'}/{tag}/{path})"

    return _LINK.sub(there, text)
