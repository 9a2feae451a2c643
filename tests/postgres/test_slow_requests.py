"""A request that arrives after its lease has ended touches no newer claim."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.proxy import Proxy
from tests.postgres.slow import ACTS, late


@pytest.fixture(scope="module")
def proxy(shared_server: Server) -> Iterator[Proxy]:
    with Proxy(shared_server.socket) as found:
        yield found


@pytest.mark.parametrize("verb", ACTS)
def test_a_late_request_of_an_old_holder_changes_nothing(
    site: Site, proxy: Proxy, verb: str
) -> None:
    assert late(site, proxy, verb) == ""
