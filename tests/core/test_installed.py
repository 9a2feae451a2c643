"""The command that installs an extra fits the way in which this dibs was installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import dibs
from dibs import installed

pytestmark = pytest.mark.fast("dibs")

CHECKOUT = Path(dibs.__file__).parents[2]


def test_in_a_checkout_it_names_the_checkout() -> None:
    command = installed.install_command("serve")
    assert command.startswith(f"`{sys.prefix}/bin/pip install ")
    assert command.endswith(f" '{CHECKOUT}[serve]'`")
    assert installed.install_command().endswith(f" {CHECKOUT}`")


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which dibs is, installed from a checkout that is there."""
    package = tmp_path / "lib/python3.11/site-packages/dibs"
    package.mkdir(parents=True)
    monkeypatch.setattr(dibs, "__file__", f"{package}/__init__.py")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.syspath_prepend(package.parent)
    (tmp_path / "my dibs").mkdir()
    (tmp_path / "my dibs/pyproject.toml").touch()
    come_from(tmp_path, {"url": f"file://{tmp_path}/my%20dibs", "dir_info": {}})
    return tmp_path


def come_from(prefix: Path, direct_url: object) -> None:
    """Let the metadata say where dibs came from; None stands for an index."""
    metadata = prefix / "lib/python3.11/site-packages/dibs-9.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dibs\nVersion: 9\n")
    if direct_url is not None:
        (metadata / "direct_url.json").write_text(json.dumps(direct_url))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("uv-receipt.toml", "uv tool install"),
        ("pipx_metadata.json", "pipx install --force"),
        ("bin/pip", "{prefix}/bin/pip install"),
        ("nothing", "uv pip install --python {python}"),
    ],
)
def test_the_tool_is_that_of_the_environment(prefix: Path, file: str, words: str) -> None:
    (prefix / "bin").mkdir()
    (prefix / file).touch()
    begin = words.format(prefix=prefix, python=sys.executable)
    assert installed.install_command("mcp") == f"`{begin} '{prefix}/my dibs[mcp]'`"


def test_the_python_of_the_system_has_its_own_pip(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(prefix))
    assert installed.install_command("mcp").startswith(f"`{sys.executable} -m pip install ")


@pytest.mark.parametrize(
    ("direct_url", "what"),
    [
        (None, "'dibs[serve]'`"),
        ({"url": "https://example.invalid/dibs.git"}, "'.[serve]'` in a checkout of dibs"),
        ({"url": "file:///gone/dibs"}, "'.[serve]'` in a checkout of dibs"),
        (["hostile"], "'.[serve]'` in a checkout of dibs"),
    ],
)
def test_what_is_installed_is_what_it_came_from(
    prefix: Path, direct_url: object, what: str
) -> None:
    metadata = prefix / "lib/python3.11/site-packages/dibs-9.dist-info"
    (metadata / "direct_url.json").unlink()
    come_from(prefix, direct_url)
    assert installed.install_command("serve").endswith(f" {what}")
