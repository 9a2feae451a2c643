"""The full form of all tests on other file systems; it takes forty minutes, as root.

    python -m tests.filesystems

Each part also runs alone: `tests.filesystems.gluster`, `.sshfs` and `.hostile`, and `.nfs` in
the machine of `machine.py`; the tests of this folder are the short form.
"""

from __future__ import annotations

import subprocess
import sys

PARTS = (
    ("gluster",),
    ("sshfs",),
    ("machine", "tests.filesystems.nfs"),
    ("hostile",),
)


def main() -> int:
    failed = []
    for part, *more in PARTS:
        print(f"=== {' '.join((part, *more))}", flush=True)
        if subprocess.run([sys.executable, "-m", f"tests.filesystems.{part}", *more]).returncode:
            failed.append(part)
    print(f"=== failed: {', '.join(failed)}" if failed else "=== all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
