"""Requests that schemathesis makes from the OpenAPI document, if it is installed.

Its dependencies are not those of the tests, so it has an environment of its own:
`python -m venv v && v/bin/pip install schemathesis`, and `$DIBS_SCHEMATHESIS=v/bin/st`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.serve.server_process import ServerProcess

PROGRAM = os.environ.get("DIBS_SCHEMATHESIS") or shutil.which("st")
EXAMPLES = 15
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection,unsupported_method"
)


@pytest.mark.skipif(PROGRAM is None, reason="NOTHING WAS FUZZED: schemathesis is not installed")
def test_the_server_does_what_its_document_says_whatever_is_asked(
    server: ServerProcess, scratch: Path
) -> None:
    assert PROGRAM is not None
    client = server.client("op", "operator")
    for ident in ("a", "b"):
        client.post("/v1/tasks", {"id": ident})
    found = subprocess.run(
        [
            *(PROGRAM, "run", f"{server.url}/v1/openapi.json"),
            *("--header", f"Authorization: Bearer {client.token}"),
            *("--phases", "examples,fuzzing", "--max-examples", str(EXAMPLES)),
            *("--checks", CHECKS, "--request-timeout", "3", "--seed", "7"),
            *("--exclude-path-regex", "/watch$|/events$", "--no-color"),
        ],
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert found.returncode == 0, found.stdout[-8000:] + found.stderr[-2000:]
    assert "Traceback" not in server.log.read_text()
