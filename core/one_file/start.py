"""dibs in one file. In `dibs.pyz` this is `dibs/__init__.py`, and becomes the package itself.

Python 3.6 must be able to compile it, so that an old one gets a line and no traceback. It has no
future import, which 3.6 does not know.
"""

import os
import sys
import zlib
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

if sys.version_info < (3, 11):  # noqa: UP036 - pip would refuse it, but nothing was installed
    raise SystemExit(f"dibs: Python 3.11 or newer is needed, this is {sys.version.split()[0]}")


class PackedModules:
    """The modules of the package, all read at once: a file that is replaced later does no harm.

    They are compressed together, because each alone takes half as much space again.
    """

    def __init__(self, folder: str, packed: bytes) -> None:
        self._folder = folder
        parts = iter(zlib.decompress(packed).split(b"\0"))
        self._files = {name.decode(): data for name, data in zip(parts, parts, strict=True)}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Where a module is; None if it is none of these."""
        file = self._file(name)
        if file is None:
            return None
        place = os.path.join(self._folder, file)
        spec = ModuleSpec(name, self, origin=place, is_package=self.is_package(name))  # type: ignore[arg-type]
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(place))
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """None: the usual kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        """The compiled module."""
        file = self._file(name)
        if file is None:
            raise ImportError(f"no module {name} in {self._folder}", name=name)
        place = os.path.join(self._folder, file)
        return compile(self._files[file], place, "exec", dont_inherit=True)

    def get_source(self, name: str) -> str | None:
        """The text of a module, for tracebacks."""
        file = self._file(name)
        return self._files[file].decode() if file is not None else None

    def get_data(self, path: str) -> bytes:
        """A file of the package, by its path."""
        found = self._files.get(os.path.relpath(path, self._folder))
        if found is None:
            raise FileNotFoundError(2, "not in this file", path)
        return found

    def is_package(self, name: str) -> bool:
        """Whether a module has modules below it."""
        return f"{self._inside(name)}__init__.py" in self._files

    def _file(self, name: str) -> str | None:
        if name != "dibs" and not name.startswith("dibs."):
            return None
        inside = self._inside(name)
        files = (f"{inside}__init__.py", f"{inside.removesuffix('/')}.py")
        return next((file for file in files if file in self._files), None)

    @staticmethod
    def _inside(name: str) -> str:
        return "".join(f"{part}/" for part in name.split(".")[1:])


def start(package: dict[str, Any]) -> None:
    """Become the package `dibs` of this file, whatever was called with a relative path."""
    folder = os.path.dirname(os.path.abspath(package["__file__"]))
    zipped = package["__loader__"]
    modules = PackedModules(
        folder, zipped.get_data(os.path.join(zipped.archive, "dibs", "modules"))
    )
    package["__file__"] = os.path.join(folder, "__init__.py")
    package["__path__"] = [folder]
    package["__loader__"] = package["__spec__"].loader = modules
    sys.meta_path.insert(0, modules)
    exec(modules.get_code("dibs"), package)


if __name__ == "dibs":
    start(globals())
