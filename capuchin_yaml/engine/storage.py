"""External storage in a local folder: large payloads by content digest."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

_DIGEST = re.compile(r"[0-9a-f]{64}")


class StoredValueMissing(RuntimeError):
    """A value that history refers to is not in the store that this process reads."""


class FolderStore(StorageDriver):
    """Values under their SHA-256 in a folder that only this user reads.

    Every worker and client of a project must see the same folder. Only `drop` deletes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def name(self) -> str:
        """The name that references carry."""
        return "folder"

    def put(self, data: bytes) -> str:
        """Keep `data` durably and return its digest; the same data is kept once."""
        digest = hashlib.sha256(data).hexdigest()
        target = self._path(digest)
        if target.exists():
            # Why: whoever sweeps the store leaves what was needed again since it began.
            os.utime(target)
            return digest
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                # Why: history will refer to it as soon as this returns.
                os.fsync(file.fileno())
            os.replace(scratch, target)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
        return digest

    def get(self, digest: str) -> bytes:
        """Return the data kept under `digest`.

        Raises:
            StoredValueMissing: it is not there, or is not what was kept.
        """
        if not _DIGEST.fullmatch(digest):
            raise StoredValueMissing(f"{digest!r} is not a digest of this store")
        try:
            data = self._path(digest).read_bytes()
        except OSError as error:
            raise StoredValueMissing(
                f"value {digest[:12]}… is not in {self.folder}: {error.strerror}; "
                "let this process read the folder that the other workers use"
            ) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoredValueMissing(f"value {digest[:12]}… in {self.folder} was changed")
        return data

    def has(self, digest: str) -> bool:
        """Whether a value is kept under `digest`."""
        return _DIGEST.fullmatch(digest) is not None and self._path(digest).is_file()

    def drop(self, digest: str, *, unless_touched_since: float) -> bool:
        """Delete a value that nobody refers to; False when somebody kept it again since then.

        Raises:
            OSError: it cannot be deleted.
        """
        path = self._path(digest)
        try:
            if path.stat().st_mtime >= unless_touched_since:
                return False
            path.unlink()
        except FileNotFoundError:
            return False
        return True

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        """Keep each payload whole."""
        digests = [
            await asyncio.to_thread(self.put, payload.SerializeToString(deterministic=True))
            for payload in payloads
        ]
        return [StorageDriverClaim(claim_data={"sha256": digest}) for digest in digests]

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Return the payloads behind the claims, in order."""
        found = []
        for claim in claims:
            data = await asyncio.to_thread(self.get, claim.claim_data.get("sha256", ""))
            found.append(Payload.FromString(data))
        return found

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest
