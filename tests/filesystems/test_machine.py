"""What this kernel cannot do, done by another one in a machine of its own."""

from __future__ import annotations

import pytest

from tests.filesystems import machine

KINDS = ("vfat", "nfs")
TESTS = (
    "tests/filesystems/test_kinds.py",
    "tests/filesystems/test_nfs.py",
    "tests/core/test_probe_mounts.py",
)
SECONDS = 420


@pytest.mark.timeout(SECONDS + 30)
def test_what_this_kernel_does_not_have_is_tried_in_a_machine_that_has_it() -> None:
    if all(map(machine.knows, KINDS)):
        pytest.skip("NO MACHINE WAS BOOTED: this kernel has everything, and it was tried here")
    if reason := machine.why_not():
        pytest.skip(f"{' AND '.join(KINDS).upper()} WERE NOT TRIED: {reason}")
    how = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "kernel", "--durations=20")
    code, said = machine.run(*how, *TESTS, seconds=SECONDS)
    print(said)
    assert code == 0
    assert "skipped" not in said
