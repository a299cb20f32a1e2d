"""Whether a worker's key is the one that the project's open conversations are sealed with."""

from __future__ import annotations

from temporalio.client import Client

from capuchin_yaml.client.link import Link
from capuchin_yaml.client.start import MEMO_STARTED
from capuchin_yaml.client.visibility import found_page, memo_value, of_project
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.sealing import SEAL
from capuchin_yaml.errors import UnsafeState

LOOKED_AT = 50
"""The newest open conversations; one that this key opens is enough."""


async def refuse_another_key(client: Client, project: str) -> None:
    """Check, before a worker polls, that its key opens what is open in the project.

    Why: to who has another key every start is forged, so such a worker would fail the
    conversations that the others serve. What nobody sealed says nothing about the key.

    Raises:
        UnsafeState: open conversations are sealed, and none that was looked at with this key.
        ServerUnavailable: the server does not answer.
    """
    link = Link(client, project, "")
    query = of_project(link, "ExecutionStatus = 'Running'")
    rows, _ = await found_page(link, query, page_rows=LOOKED_AT)
    foreign = ""
    for info in rows:
        for name in (MEMO_STARTED, contract.MEMO_TITLE, contract.MEMO_INBOX):
            if name not in info.memo.fields or SEAL not in info.memo.fields[name].metadata:
                continue
            if not isinstance(await memo_value(link, info, name), contract.Unsealed):
                return
            foreign = foreign or info.execution.workflow_id
    if foreign:
        raise UnsafeState(
            f"{foreign} and the other open conversations of project {project!r} are sealed with"
            " another key than the one here, so a worker with it would make them fail; name the"
            " project's key in CAPUCHIN_KEY_FILE, or another project in CAPUCHIN_PROJECT"
        )
