"""Notices at the worker: each hook of the operator's is told once, as far as anybody can know."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from temporalio import activity
from temporalio.exceptions import ApplicationError

from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.compiler.operator_people import Hook
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import check_origin
from capuchin_yaml.engine.outside import NoAnswer, post
from capuchin_yaml.errors import ToolCancelled
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.child import Children

HOOK_S = 10.0
NOT_TOLD = "NotTold"

logger = logging.getLogger("capuchin_yaml.worker")


@dataclass(slots=True)
class NoticeActivities:
    """What the workflow wants others to hear."""

    operator: LiveOperatorConfig = field(default_factory=LiveOperatorConfig)

    @activity.defn(name=contract.NOTIFY)
    async def notify(self, request: contract.Notify) -> dict[str, JsonValue]:
        """Tell every hook that wants to hear of it; a repeat leaves out those that heard."""
        check_origin(request, contract.Notify)
        notice = request.notice
        hooks = [
            hook
            for hook in self.operator.now().hooks
            if not hook.bell and hook.wants(str(notice["event"]), str(notice["agent"]))
        ]
        told = _told_before()
        failed: list[str] = []
        for hook in hooks:
            name = _name(hook)
            if name in told:
                continue
            try:
                await asyncio.to_thread(_tell, hook, notice)
            except _NotTold as error:
                logger.warning("notice %s: %s: %s", notice["id"], name, error)
                failed.append(f"{name}: {error}")
            else:
                told.append(name)
                activity.heartbeat(told)
        if failed:
            raise ApplicationError("; ".join(failed)[:500], list(told), type=NOT_TOLD)
        return {"told": len(told)}


class _NotTold(Exception):
    """A hook did not take the notice; the text says why."""


def _told_before() -> list[str]:
    details = activity.info().heartbeat_details
    return [str(name) for name in details[0]] if details else []


def _name(hook: Hook) -> str:
    """What logs and history call a hook: an address or an argument may be a secret."""
    shown = urlsplit(hook.webhook).hostname or Path(hook.command[0]).name
    whole = "\0".join((hook.webhook, *hook.command)).encode("utf-8", "surrogatepass")
    return f"{shown} {hashlib.sha256(whole).hexdigest()[:8]}"


def _tell(hook: Hook, notice: Mapping[str, Any]) -> None:
    if hook.webhook:
        _post(hook, notice)
    else:
        _start(hook, notice)


def _post(hook: Hook, notice: Mapping[str, Any]) -> None:
    try:
        secret = hook.secret.read() if hook.secret is not None else None
        answer = post(
            hook.webhook,
            notice,
            timeout_s=HOOK_S,
            secret=secret,
            headers={"X-Capuchin-Delivery": str(notice["id"])},
        )
    except (NoAnswer, ValueError) as error:
        raise _NotTold(str(error)) from None
    if not 200 <= answer.status < 300:
        raise _NotTold(f"it answered with status {answer.status}")


def _start(hook: Hook, notice: Mapping[str, Any]) -> None:
    children = Children(threading.Event())
    env = {name: os.environ[name] for name in hook.env if name in os.environ}
    try:
        ran = children.run(hook.command, timeout_s=HOOK_S, input=json.dumps(notice), env=env)
    except (OSError, TimeoutError, ToolCancelled) as error:
        raise _NotTold(str(error)) from None
    finally:
        children.kill()
    if ran.returncode != 0:
        words = (ran.stderr or ran.stdout).strip().splitlines()
        raise _NotTold(f"it ended with {ran.returncode}: {words[-1][:200] if words else ''}")
