"""The built wheel alone holds all that the program needs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a wheel that was built from these sources."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)],
        check=True,
    )
    [wheel] = folder.glob("capuchin_yaml-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def ran(unpacked: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a verb of the unpacked wheel says."""
    code = (
        f"import sys; sys.path.insert(0, {str(unpacked)!r});"
        " import capuchin_yaml; assert capuchin_yaml.__file__.startswith(sys.path[0]);"
        " from capuchin_yaml.cli.app import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-I", "-c", code, *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TEMPORAL_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
    )


def test_the_wheel_validates_explains_and_exports(unpacked: Path, tmp_path: Path) -> None:
    agent = tmp_path / "agent.yaml"
    agent.write_text(
        "apiVersion: capuchin/v1\nname: hi\nversion: 1.0.0\nprompt: Be kind.\n"
        "tols: []\ndescription: Says hi.\nprice: {type: free}\n"
    )

    wrong = ran(unpacked, tmp_path, "validate", "agent.yaml")
    agent.write_text(agent.read_text().replace("tols: []\n", ""))
    right = ran(unpacked, tmp_path, "validate", "agent.yaml")
    page = ran(unpacked, tmp_path, "explain", "unknown-key")
    schema = ran(unpacked, tmp_path, "schema")
    listing = ran(unpacked, tmp_path, "export", "agent.yaml")

    assert wrong.returncode == 1
    assert "error[unknown-key]" in wrong.stderr + wrong.stdout
    assert right.returncode == 0, right.stderr
    assert "unknown-key" in page.stdout
    assert '"$schema"' in schema.stdout
    assert '"hi"' in listing.stdout, listing.stderr
