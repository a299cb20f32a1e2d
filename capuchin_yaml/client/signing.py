"""Signed decisions: what a person says, signed with their SSH key by ssh-keygen.

The key is a file, or one that ssh-agent holds; hardware keys work as they do for ssh. A key with
a passphrase must be in the agent: nothing here asks for one.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.signed import NAMESPACE
from capuchin_yaml.terminal_text import one_line

VARIABLE = "CAPUCHIN_SIGNING_KEY"
SIGN_S = 60.0
"""Time to touch a hardware key."""


def signing_key() -> Path | None:
    """The key that CAPUCHIN_SIGNING_KEY names; None when decisions are not signed.

    Raises:
        RequestRefused: there is no such file.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if not named:
        return None
    path = Path(named).expanduser()
    if not path.is_file():
        raise RequestRefused(
            f"{VARIABLE} names {named!r}, which is no file; give a private key, or the .pub file "
            "of a key that ssh-agent holds"
        )
    return path


async def signature(statement: str, key: Path) -> str:
    """The armored SSH signature of a statement.

    Raises:
        RequestRefused: it cannot be signed; the text says why.
    """
    try:
        program = await asyncio.create_subprocess_exec(
            *("ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Why: without a terminal it fails instead of asking for a passphrase over the screen.
            start_new_session=True,
            env=_environment(),
        )
    except FileNotFoundError:
        raise RequestRefused(
            "the decision cannot be signed: there is no ssh-keygen here; install OpenSSH"
        ) from None
    try:
        async with asyncio.timeout(SIGN_S):
            out, err = await program.communicate(statement.encode("utf-8", "surrogatepass"))
    except TimeoutError:
        raise RequestRefused(
            f"the decision was not signed within {SIGN_S:g} s; was the key touched?"
        ) from None
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    if program.returncode != 0:
        said = one_line(err.decode("utf-8", "replace"), 200)
        raise RequestRefused(
            f"the decision could not be signed with {key}: {said}; "
            "a key with a passphrase must be in ssh-agent (ssh-add)"
        )
    return out.decode("ascii")


def _environment() -> dict[str, str]:
    names = ("PATH", "HOME", "SSH_AUTH_SOCK", "SSH_SK_PROVIDER")
    return {
        **{name: os.environ[name] for name in names if name in os.environ},
        "SSH_ASKPASS_REQUIRE": "never",
    }
