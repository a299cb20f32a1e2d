"""The door: every payload carries the project's seal, and what does not is never acted on.

The seal is an HMAC-SHA256 over a payload's data and metadata. Data stays plain JSON. A
payload without a right seal decodes to `Unsealed`, which every validator, start and activity
refuses; so does one with a seal that nobody can read. Decoding never raises for what was sent: a
raise there would fail the workflow task for ever.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import Payload, Payloads
from temporalio.converter import (
    BinaryNullPayloadConverter,
    CompositePayloadConverter,
    DataConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
    PayloadCodec,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from capuchin_yaml.engine.contract import INLINE, Unsealed

SEAL = "capuchin-seal"
"""Metadata key of the seal."""
STORE_FROM_BYTES = 64 * 1024
"""Payloads over this go to external storage, where there is one."""

_UNSEALED = b"capuchin/unsealed"
_STORED = b"capuchin/stored"
_ENCODINGS = frozenset({b"json/plain", b"binary/null"})
"""All that we write."""
_SDK_REFERENCE = "__temporal_external_storage_reference"


def sealed_converter(key: bytes, store: StorageDriver | None = None) -> DataConverter:
    """Return the one data converter of a project: seals with `key`, large values in `store`."""
    return _SealedDataConverter(
        payload_converter_class=_SealedPayloadConverter,
        payload_codec=SealingCodec(key, store),
    )


class SealingCodec(PayloadCodec):
    """Seals on the way out; on the way in, replaces what is not sealed by the marker."""

    def __init__(self, key: bytes, store: StorageDriver | None = None) -> None:
        if len(key) < 16:
            raise ValueError("the project key has fewer than 16 bytes")
        self._key = key
        self._store = store

    @property
    def store(self) -> StorageDriver | None:
        """Where large values are kept; None keeps all in history."""
        return self._store

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Move large payloads to the store and seal all."""
        out = []
        for payload in payloads:
            large = payload.ByteSize() > STORE_FROM_BYTES and INLINE not in payload.metadata
            if large and self._store is not None:
                payload = await self._put(self._store, payload)
            sealed = Payload()
            sealed.CopyFrom(payload)
            sealed.metadata[SEAL] = self._seal(payload)
            out.append(sealed)
        return out

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Return sealed payloads without their seal, and the marker for every other one.

        Raises:
            StoredValueMissing: a payload of ours refers to a store that this process lacks.
        """
        out = []
        for payload in payloads:
            plain = Payload()
            plain.CopyFrom(payload)
            seal = plain.metadata.pop(SEAL, b"")
            is_ours = hmac.compare_digest(seal, self._seal(plain))
            if is_ours and plain.metadata.get("encoding") == _STORED:
                plain = await self._get(plain)
            if not is_ours or plain.metadata.get("encoding") not in _ENCODINGS:
                plain = Payload(metadata={"encoding": _UNSEALED})
            out.append(plain)
        return out

    def _seal(self, payload: Payload) -> bytes:
        mac = hmac.new(self._key, digestmod=hashlib.sha256)
        for name, value in sorted(payload.metadata.items()):
            if name != SEAL:
                part = name.encode() + b"\0" + value
                mac.update(len(part).to_bytes(8, "big") + part)
        mac.update(b"\1" + payload.data)
        return mac.digest()

    async def _put(self, store: StorageDriver, payload: Payload) -> Payload:
        context = StorageDriverStoreContext(target=None)
        [claim] = await store.store(context, [payload])
        reference = {"driver": store.name(), "claim": dict(claim.claim_data)}
        return Payload(
            metadata={"encoding": _STORED},
            data=json.dumps(reference, separators=(",", ":"), sort_keys=True).encode(),
        )

    async def _get(self, reference: Payload) -> Payload:
        from capuchin_yaml.engine.storage import StoredValueMissing

        value = json.loads(reference.data)
        if self._store is None or self._store.name() != value["driver"]:
            raise StoredValueMissing(
                f"a value is in the external store {value['driver']!r}, which this process "
                "does not have; set CAPUCHIN_STORE to the folder that the others use"
            )
        claim = StorageDriverClaim(claim_data=value["claim"])
        [payload] = await self._store.retrieve(StorageDriverRetrieveContext(), [claim])
        return payload


class _UnsealedConverter(EncodingPayloadConverter):
    @property
    def encoding(self) -> str:
        return _UNSEALED.decode()

    def to_payload(self, value: Any) -> Payload | None:
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        return Unsealed()


class _JsonConverter(JSONPlainPayloadConverter):
    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        try:
            return super().from_payload(payload, type_hint)
        except (UnicodeDecodeError, RecursionError):
            return Unsealed()
        except RuntimeError as error:
            if isinstance(error.__cause__, json.JSONDecodeError):
                return Unsealed()
            raise


class _SealedPayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(BinaryNullPayloadConverter(), _UnsealedConverter(), _JsonConverter())


@dataclasses.dataclass(frozen=True)
class _SealedDataConverter(DataConverter):
    """Takes no reference of the SDK's own external storage.

    Why: the SDK resolves such references before any codec sees them and raises when it
    cannot, so one forged reference would fail the workflow task for ever. Ours travel inside
    the seal. tests/engine/test_sealing.py sends every forged form against a real server.
    """

    async def _decode_reference_payload_sequence(
        self, payloads: Sequence[Payload]
    ) -> list[Payload]:
        return [_without_sdk_reference(p) for p in payloads]

    async def _external_retrieve_payload_sequence(
        self, payloads: Sequence[Payload]
    ) -> list[Payload]:
        return list(payloads)

    async def _transform_inbound_payload(self, payload: Payload) -> Payload:
        [plain] = await self._decode_payload_sequence([_without_sdk_reference(payload)])
        return plain

    async def _transform_inbound_payloads(self, payloads: Payloads) -> None:
        plain = await self._decode_payload_sequence(
            [_without_sdk_reference(p) for p in payloads.payloads]
        )
        for i, payload in enumerate(plain):
            payloads.payloads[i].CopyFrom(payload)


def _without_sdk_reference(payload: Payload) -> Payload:
    if payload.metadata.get(_SDK_REFERENCE) or payload.metadata.get("encoding") in (
        b"json/external-storage-reference",
        b"json/protobuf",
    ):
        return Payload(metadata={"encoding": _UNSEALED})
    return payload
