"""A worker of its own process for crash tests: `python worker_process.py FOLDER` serves it.

FOLDER holds `job.json` with the address, key, project and agents, and perhaps a shorter patience
with silent workers; `ready-NAME` appears in it once the worker polls. Ends when its standard input
closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from temporalio.client import Client

from capuchin_yaml.engine import entering
from capuchin_yaml.engine.agents import AgentTable, ServedAgent
from capuchin_yaml.engine.sealing import sealed_converter
from capuchin_yaml.engine.worker import WorkerSettings, run_worker
from capuchin_yaml.spec import AgentSpec
from capuchin_yaml.tools.registry import Registry


async def main(folder: Path, name: str) -> None:
    job = json.loads((folder / "job.json").read_text())
    entering.ONE_ATTEMPT_HEARTBEAT_S = job.get(
        "one_attempt_heartbeat_s", entering.ONE_ATTEMPT_HEARTBEAT_S
    )
    client = await Client.connect(
        job["address"], data_converter=sealed_converter(bytes.fromhex(job["key"]))
    )
    agents = AgentTable()
    for value in job["agents"]:
        agents.put(ServedAgent(AgentSpec.from_json(value)))
    stop, ready = asyncio.Event(), asyncio.Event()
    worker = asyncio.create_task(
        run_worker(
            client,
            project=job["project"],
            agents=agents,
            registry=Registry.installed(),
            settings=WorkerSettings(data_dir=Path(job["data_dir"])),
            stop=stop,
            ready=ready,
        )
    )
    await ready.wait()
    (folder / f"ready-{name}").touch()
    await asyncio.to_thread(sys.stdin.read)
    stop.set()
    await worker


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent / "lab"))
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
