"""Worker Deployments: which release of the code a conversation runs on, where the server knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from capuchin_yaml.errors import RequestRefused

NAME = "CAPUCHIN_DEPLOYMENT"
BUILD = "CAPUCHIN_BUILD_ID"
MOVES = "CAPUCHIN_VERSIONING"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}")


@dataclass(frozen=True, slots=True)
class Deployment:
    """One build of one deployment, and how conversations come to it."""

    name: str
    build_id: str
    moves: Literal["auto", "pinned"] = "auto"
    """`auto`: open conversations move to the current build at their next step. `pinned`: they
    stay with the build they began on until they roll over, so its workers must go on running."""

    def config(self) -> WorkerDeploymentConfig:
        """What the SDK's worker takes."""
        behaviours = {
            "auto": VersioningBehavior.AUTO_UPGRADE,
            "pinned": VersioningBehavior.PINNED,
        }
        return WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(deployment_name=self.name, build_id=self.build_id),
            use_worker_versioning=True,
            default_versioning_behavior=behaviours[self.moves],
        )

    def command(self, *, address: str, namespace: str) -> str:
        """What an operator types to send conversations to this build."""
        return (
            f"temporal worker deployment set-current-version --deployment-name {self.name}"
            f" --build-id {self.build_id} --address {address} --namespace {namespace}"
        )


def deployment_from(environ: Mapping[str, str]) -> Deployment | None:
    """Read CAPUCHIN_DEPLOYMENT, CAPUCHIN_BUILD_ID and CAPUCHIN_VERSIONING; None without the first.

    Raises:
        RequestRefused: one of them cannot be used.
    """
    name = environ.get(NAME)
    if not name:
        return None
    build = environ.get(BUILD, "")
    for variable, value in ((NAME, name), (BUILD, build)):
        # Why no dot in the name: the server parts name and build at the first dot.
        if not _PLAIN.fullmatch(value) or (variable == NAME and "." in value):
            raise RequestRefused(
                f"{variable} is {value!r}; it must be a plain word, and {NAME} needs both"
            )
    moves = environ.get(MOVES, "auto")
    if moves not in ("auto", "pinned"):
        raise RequestRefused(f"{MOVES} is {moves!r}; it is auto or pinned")
    return Deployment(name, build, "pinned" if moves == "pinned" else "auto")
