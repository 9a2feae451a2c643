"""What docs/engines.md says to type does what it says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.postgres.boards import Site

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"


def test_the_update_of_one_setting_leaves_the_others(site: Site) -> None:
    (update,) = re.findall(r"^UPDATE dibs\.meta .*;$", PAGE.read_text(), re.MULTILINE)
    for text in ("", "format = 2\nttl = 90\nmax_attempts = 3", "max_attempts=3\nttl=5\n"):
        site.sql("UPDATE dibs.meta SET value = %s WHERE key = 'settings'", text)
        before = site.board.settings
        for _ in range(2):
            site.sql(update)
            assert site.board.settings == before._replace(ttl=300)
