"""From a request to the tool that would run it here, and what that is told of the call."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from temporalio import activity

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.tool_outcome import Outcome
from capuchin_yaml.errors import PluginUnavailable
from capuchin_yaml.items import call_digest
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.context import ToolContext
from capuchin_yaml.tools.definition import Tool
from capuchin_yaml.tools.registry import Registry

ToolRequest: TypeAlias = contract.CallTool | contract.PreviewTool


def find_tool(registry: Registry, request: ToolRequest) -> tuple[Tool | None, Outcome]:
    """Return the very tool that was judged, or None and the outcome that says why not."""
    entry, _, name = request.tool.partition(".")
    try:
        package = registry.package(entry)
        tool = package.tools.get(name)
    except PluginUnavailable as error:
        return None, {"status": "unavailable", "text": str(error)}
    if tool is None:
        text = f"{request.tool} is no longer installed on this worker"
        return None, {"status": "unavailable", "text": text}
    here = {
        "identity": request.tool,
        "tool_version": tool.version,
        "distribution": package.distribution,
        "distribution_version": package.distribution_version,
        "config": dict(request.config),
    }
    digest = call_digest(here, request.arguments, request.injected, request.definition_hash)
    if digest != request.digest:
        text = f"this worker has {package.distribution} {package.distribution_version}"
        return None, {"status": "changed", "text": text}
    return tool, {}


def tool_context(
    request: ToolRequest,
    config: dict[str, JsonValue],
    data_dir: Path,
    heartbeat: Callable[..., None],
    preview_hash: str | None = None,
) -> ToolContext:
    """What the tool is told of this call; inside an activity."""
    info = activity.info()
    return ToolContext(
        idempotency_key=idempotency_key(info.namespace, request),
        conversation_id=request.conversation,
        call_id=request.call_id,
        attempt=info.attempt,
        data_dir=data_dir / request.tool.partition(".")[0],
        config=config,
        injected=dict(request.injected),
        heartbeat=heartbeat,
        preview_hash=preview_hash,
    )


def idempotency_key(namespace: str, request: ToolRequest) -> str:
    """The key a tool may hand to whatever it changes, 52 characters of lower-case base32.

    The same after a retry, restart, roll-over and reset to the same arguments; another for
    an edit, for another reply after a reset, and for a new conversation under a used id.
    """
    arguments = hashlib.sha256(request.arguments.encode()).hexdigest()
    parts = "\0".join((namespace, request.first_run_id, str(request.n), request.tool, arguments))
    digest = hashlib.sha256(parts.encode()).digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()
