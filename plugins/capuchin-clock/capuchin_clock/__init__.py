"""The time of day, and waiting, as tools of capuchin-yaml."""

from __future__ import annotations

import asyncio
import datetime
import time
import zoneinfo
from typing import Annotated

from pydantic import Field

from capuchin_yaml.tools.api import ToolContext, ToolFailed, tool

Seconds = Annotated[float, Field(ge=0, le=3600)]


@tool(effect="read")
async def now(ctx: ToolContext, zone: str = "UTC") -> dict[str, str]:
    """Tell the date and time of a time zone.

    Args:
        zone: IANA name of the zone, such as Europe/Paris.
    """
    name = str(ctx.injected.get("time_zone", zone))
    try:
        moment = datetime.datetime.now(zoneinfo.ZoneInfo(name))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise ToolFailed(f"there is no time zone {name!r}; write one such as UTC") from error
    return {
        "time": moment.isoformat(timespec="seconds"),
        "weekday": moment.strftime("%A"),
        "zone": name,
    }


@tool(effect="read")
async def sleep(seconds: Seconds, ctx: ToolContext) -> str:
    """Wait for some time, then answer.

    Args:
        seconds: How long to wait.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while (left := end - loop.time()) > 0:
        ctx.heartbeat(f"{left:.0f} s left")
        await asyncio.sleep(min(left, 1.0))
    return f"waited {seconds:g} s"


@tool(effect="read")
def block(seconds: Seconds) -> str:
    """Wait for some time without a sign of life, as careless code does.

    Args:
        seconds: How long to wait.
    """
    time.sleep(seconds)
    return f"blocked for {seconds:g} s"
