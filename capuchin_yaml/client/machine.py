"""Which machine this is, so that a state folder made elsewhere is told from our own."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import subprocess
import sys
from pathlib import Path


def machine_mark(folder: Path) -> str:
    """Name this machine for a state folder, in a way that tells nothing else about it."""
    identity = _machine_id()
    if identity is None:
        # Why: without any id (slim containers) the folder's own inode still tells a copy
        # from the original.
        found = folder.stat()
        identity = f"inode {found.st_dev}:{found.st_ino}"
    return hmac.new(identity.encode(), b"capuchin-yaml state folder", hashlib.sha256).hexdigest()


def _machine_id() -> str | None:
    for file in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            text = Path(file).read_text(encoding="ascii", errors="replace").strip()
            if text and text != "uninitialized":
                return text
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            listing = subprocess.run(
                ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"],
                capture_output=True,
                text=True,
                timeout=5,
                check=True,
            ).stdout
            if found := re.search(r'"IOPlatformUUID" = "([^"]+)"', listing):
                return found.group(1)
    return None
