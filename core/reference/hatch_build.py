"""The build hook of the wheel: it adds the man pages."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):  # type: ignore[misc]
    """Writes the man pages to a temporary folder, and names them as files of the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the pages before the wheel is put together."""
        sys.path[:0] = [str(Path(self.root, part)) for part in ("core", "tui")]
        try:
            from reference.man import pages

            texts = pages(self.metadata.version)
        finally:
            del sys.path[:2]
        self._folder = TemporaryDirectory()
        for name, text in texts.items():
            path = Path(self._folder.name, name)
            path.write_text(text)
            build_data["shared_data"][str(path)] = f"share/man/man1/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:
        """Remove the folder."""
        self._folder.cleanup()
