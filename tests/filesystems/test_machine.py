"""The tests that this kernel cannot run, run by another kernel in a virtual machine."""

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
def test_file_systems_that_this_kernel_lacks_work_in_a_virtual_machine() -> None:
    if reason := machine.why_not():
        pytest.skip(f"WHAT THIS KERNEL DOES NOT HAVE WAS NOT TRIED: {reason}")
    how = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "kernel", "--durations=20")
    code, said = machine.run(*how, *TESTS, seconds=SECONDS)
    print(said)
    assert code == 0
    assert "skipped" not in said
