"""What this kernel cannot do, done by another one in a machine of its own."""

from __future__ import annotations

import pytest

from tests.filesystems import machine

TESTS = (
    "tests/filesystems/test_kinds.py",
    "tests/filesystems/test_nfs.py",
    "tests/core/test_probe_mounts.py",
)
SECONDS = 600


@pytest.mark.timeout(SECONDS + 30)
def test_what_this_kernel_does_not_have_is_tried_in_a_machine_that_has_it() -> None:
    if reason := machine.why_not():
        pytest.skip(f"WHAT THIS KERNEL DOES NOT HAVE WAS NOT TRIED: {reason}")
    how = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "kernel", "--durations=20")
    code, said = machine.run(*how, *TESTS, seconds=SECONDS)
    print(said)
    assert code == 0
    assert "skipped" not in said
