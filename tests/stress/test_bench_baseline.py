"""The benchmark's baseline: the bare loop must make the very system calls that dibs makes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.bench import trace


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("durability", ["off", "normal"])
def test_the_bare_loop_of_the_benchmark_makes_the_calls_of_dibs(
    durability: str, tmp_path: Path
) -> None:
    assert trace.differences(durability, tmp_path) == ""
