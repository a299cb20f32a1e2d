"""The operator's config of the worker that a test runs in its own process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_operator_config(folder: Path, **blocks: Any) -> Path:
    """Write the config where XDG_CONFIG_HOME=folder looks for it; YAML takes JSON as it is."""
    path = folder / "capuchin" / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(blocks))
    fresh.chmod(0o600)
    os.replace(fresh, path)
    return path


def make_key(folder: Path, name: str, passphrase: str = "") -> tuple[Path, str]:
    """A new SSH key pair: the private key's file, and the public line."""
    path = folder / f"id_{name}"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return path, path.with_suffix(".pub").read_text().strip()


def sign(text: str, key: Path, namespace: str = "capuchin-decision") -> str:
    """An armored SSH signature, made apart from the code under test."""
    ran = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-q", "-n", namespace, "-f", str(key)],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    return ran.stdout.decode()


Blocks = Mapping[str, Any]
