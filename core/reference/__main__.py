"""`python -m reference` writes docs/reference; `python -m reference FOLDER` the man pages."""

from __future__ import annotations

import sys
from pathlib import Path

import dibs
from reference.man import pages
from reference.markdown import command_line
from reference.python_api import python_api
from reference.settings import settings

DOCS = Path(__file__).parents[2] / "docs/reference"
PAGES = {"command-line.md": command_line, "python.md": python_api, "settings.md": settings}


def main(words: list[str]) -> None:
    """Write the pages and name them."""
    texts = pages(dibs.__version__) if words else {name: make() for name, make in PAGES.items()}
    folder = Path(words[0]) if words else DOCS
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
        print(folder / name)


if __name__ == "__main__":
    main(sys.argv[1:])
