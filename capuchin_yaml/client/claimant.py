"""Which process looks at an item, so that nobody is shown to look who was killed meanwhile."""

from __future__ import annotations

import os
import socket
from functools import cache

from capuchin_yaml.client.guard import process_start


@cache
def this_process() -> str:
    """This very process: its machine, number and start; empty where no start can be read."""
    start = process_start(os.getpid())
    return f"{socket.gethostname()} {os.getpid()} {start}" if start else ""


def has_ended(process: str) -> bool:
    """Whether a process of this machine has ended; one of another machine is not known to have."""
    host, _, rest = process.partition(" ")
    number, _, start = rest.partition(" ")
    if host != socket.gethostname() or not number.isdecimal() or not start:
        return False
    return process_start(int(number)) != start
