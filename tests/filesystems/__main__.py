"""The full form of everything that is tried on other file systems; half an hour, as root.

    python -m tests.filesystems

Each part also runs by itself: `tests.filesystems.gluster`, `.sshfs` and `.hostile`; the tests of
this folder are their shorter form.
"""

from __future__ import annotations

import subprocess
import sys

PARTS = ("gluster", "sshfs", "hostile")


def main() -> int:
    failed = []
    for part in PARTS:
        print(f"=== {part}", flush=True)
        if subprocess.run([sys.executable, "-m", f"tests.filesystems.{part}"]).returncode:
            failed.append(part)
    print(f"=== failed: {', '.join(failed)}" if failed else "=== all of it held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
