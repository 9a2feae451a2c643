"""The output of the work on a claim, sent to the server in parts."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from dibs.model.outputs import check_log_bytes
from dibs.remote.sessions import quoted

if TYPE_CHECKING:
    from dibs.model.task import Task
    from dibs.remote.sessions import RemoteSession

_PART = 700_000


class RemoteOutput:
    """Keeps the beginning and the end of what the work on one claim prints."""

    def __init__(self, session: RemoteSession, task: Task, limit: int) -> None:
        self._session = session
        self._path = f"/v1/claims/{quoted(task.name)}/output"
        self._limit = check_log_bytes(limit)

    def keep(self, data: bytes, at: int) -> None:
        """Keep the output from offset `at` on; what was skipped before it is a gap."""
        for begin in range(0, len(data), _PART):
            self._session.change(
                self._path,
                "the output",
                {
                    "data_base64": b64encode(data[begin : begin + _PART]).decode(),
                    "at": at + begin,
                    "limit": self._limit,
                },
            )
