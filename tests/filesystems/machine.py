"""A virtual machine for the file systems that this kernel does not have: Debian's kernel in qemu.

    python -m tests.filesystems.machine tests.filesystems.nfs --seconds 60

runs that module in it. `DIBS_TEST_KERNEL` names the folder of an unpacked kernel package, as
`apt-get download linux-image-…` and `dpkg -x` make it; `.ci/run` does so. The machine has two
processors, reads the files of this one, writes to memory, and ends with the module. It boots in ten
seconds, and runs at a fifth of the speed, because it emulates the processor: hardware support is
not available everywhere.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "loop",
    "ext4",
    "vfat",
    "nls_cp437",
    "nls_ascii",
    "veth",
    "nfsd",
    "nfs",
    "nfsv3",
    "nfsv4",
)
"""The modules for the tests."""
_FIRST = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
"""The modules for its own files."""
_PROGRAMS = ("qemu-system-x86_64", "busybox", "modprobe", "depmod", "cpio")
_QEMU = (
    *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max"),
    *("-smp", "2", "-m", "4096", "-display", "none", "-serial", "stdio", "-monitor", "none"),
    *("-no-reboot", "-device", "virtio-9p-pci,fsdev=files,mount_tag=files", "-fsdev"),
    "local,id=files,path=/,security_model=none,readonly=on,multidevs=remap",
)
_INIT = """\
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
for module in $($b cat /modules); do $b insmod /$module; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=500000 files /files
$b mount -t tmpfs none /new
$b mkdir /new/above /new/work /new/both
$b mount -t overlay -o lowerdir=/files,upperdir=/new/above,workdir=/new/work none /new/both
$b cp /inside /new/both/inside
exec $b switch_root /new/both /bin/sh /inside
"""
_INSIDE = """\
export PATH={path} HOME=/tmp LC_ALL=C.UTF-8 DIBS_TEST_MACHINE=1
cd /
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts none /dev/pts
for folder in /dev/shm /run /var/lib/nfs; do mount -t tmpfs -o mode=1777 none $folder; done
mkdir -p /var/lib/nfs/sm /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs
modprobe -a -d {kernel} {modules}
mount -t nfsd none /proc/fs/nfsd
mount -t rpc_pipefs none /var/lib/nfs/rpc_pipefs
ip link set lo up
hostname machine
cd {root}
{command}
echo "=== ended with $?"
busybox poweroff -f
"""
_ended = re.compile(r"^=== ended with (\d+)\r?$", re.MULTILINE).search


def inside() -> bool:
    """Whether this is the virtual machine, where nothing can be harmed."""
    return "DIBS_TEST_MACHINE" in os.environ


def knows(kind: str) -> bool:
    """Whether a file system can be tested here, with its module loaded or not."""
    if inside():
        return True
    if kind == "nfs":  # the tests would stop the server of this machine
        return False
    if kind in Path("/proc/filesystems").read_text().split():
        return True
    modprobe = _found("modprobe")
    how = (modprobe or "", "--dry-run", "--quiet", kind)
    return modprobe is not None and not subprocess.run(how, check=False).returncode


def why_not() -> str:
    """Why no virtual machine can run; empty if one can."""
    missing = [name for name in _PROGRAMS if _found(name) is None]
    if missing:
        return f"{', '.join(missing)}: not installed"
    if not list(_kernel().glob("boot/vmlinuz-*")):
        return "DIBS_TEST_KERNEL names no folder of an unpacked kernel package"
    return ""


def run(*command: str, seconds: float) -> tuple[int, str]:
    """Run this Python in the machine; returns the exit code and the output.

    The code is -1 if the machine did not finish in time.
    """
    with tempfile.TemporaryDirectory() as scratch:
        image = _image(Path(scratch), shlex.join([sys.executable, *command]))
        kernel = next(_kernel().glob("boot/vmlinuz-*"))
        booted = ("-kernel", kernel, "-initrd", image, "-append", "console=ttyS0 quiet panic=-1")
        try:
            done = subprocess.run(
                [*_QEMU, *booted], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
            )
            said = done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
    text = said.decode("utf-8", "replace").replace("\r", "")
    ended = _ended(text)
    return int(ended[1]) if ended else -1, text


def _image(folder: Path, command: str) -> Path:
    """The initial file system of the kernel."""
    made = folder / "first"
    for name in ("bin", "proc", "dev", "files", "new"):
        (made / name).mkdir(parents=True)
    busybox = Path(_found("busybox") or "")
    for file in (busybox, *_libraries(busybox)):
        place = made / ("bin/busybox" if file == busybox else str(file).lstrip("/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    modules = list(dict.fromkeys(file for name in _FIRST for file in _needed(name)))
    for file in modules:
        shutil.copy(file, made)
    (made / "modules").write_text("\n".join(file.name for file in modules))
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    (made / "inside").write_text(
        _INSIDE.format(
            path=path, kernel=_kernel(), modules=" ".join(MODULES), root=ROOT, command=command
        )
    )
    (made / "init").write_text(_INIT)
    (made / "init").chmod(0o755)
    listed = "\n".join(str(file.relative_to(made)) for file in made.rglob("*"))
    packed = subprocess.run(
        ["cpio", "--create", "--format=newc", "--quiet"],
        input=listed.encode(), cwd=made, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    image = folder / "image"
    image.write_bytes(packed.stdout)
    return image


def _libraries(program: Path) -> list[Path]:
    """The libraries of a program; none for a static one."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return [Path(word) for word in done.stdout.split() if word.startswith("/")]


def _needed(module: str) -> Iterator[Path]:
    """A module of the machine's kernel and its dependencies, in the order of loading."""
    version = next(_kernel().glob("lib/modules/*")).name
    if not (_kernel() / "lib/modules" / version / "modules.dep").exists():
        subprocess.run([_found("depmod") or "", "-b", _kernel(), version], check=True)
    how = (_found("modprobe") or "", "-d", _kernel(), "-S", version, "--show-depends", module)
    listed = subprocess.run(how, capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if line.startswith("insmod "):
            yield Path(line.split()[1])


def _kernel() -> Path:
    return Path(os.environ.get("DIBS_TEST_KERNEL") or "/nonexistent")


def _found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


if __name__ == "__main__":
    if reason := why_not():
        sys.exit(f"NO MACHINE CAN BE HAD: {reason}")
    code, said = run("-m", *sys.argv[1:], seconds=7200)
    print(said)
    sys.exit(code)
