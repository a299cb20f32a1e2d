"""Whose decision it is: looked up in the operator's config of the worker, signatures verified."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from temporalio import activity

from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import check_origin
from capuchin_yaml.items import STOPPING
from capuchin_yaml.signed import NAMESPACE
from capuchin_yaml.spec import JsonValue

VERIFY_S = 2.0
_SIGNER = "signer"
"""The principal of every allowed key: names of people never reach ssh, where they are patterns."""


@dataclass(slots=True)
class PeopleActivities:
    """What the workflow asks about people."""

    operator: LiveOperatorConfig = field(default_factory=LiveOperatorConfig)

    @activity.defn(name=contract.CHECK_DECISION, no_thread_cancel_exception=True)
    def check_decision(self, request: contract.CheckDecision) -> dict[str, JsonValue]:
        """Whether a decision counts: `{problem, proven, gone}`.

        `problem` says why it does not; `gone` is who approved earlier and may no longer.
        """
        check_origin(request, contract.CheckDecision)
        people = self.operator.now().people
        stops = request.choice in STOPPING
        if people.problem:
            # Why: whose decisions must be signed is not known then; to refuse needs no trust.
            problem = "" if stops else f"nobody can approve: {people.problem}"
            return {"problem": problem, "proven": False, "gone": []}
        problem = people.refusal(request.by, request.approvers)
        keys = people.keys.get(request.by, ())
        proven = False
        if not problem and keys:
            if request.signature:
                problem = unproven(request.statement, request.signature, keys, request.by)
                proven = not problem
            else:
                problem = (
                    f"decisions of {request.by} must be signed; set CAPUCHIN_SIGNING_KEY to the "
                    "private key, or to the .pub file of one that ssh-agent holds"
                )
        gone = [
            name
            for name, was_proven in request.earlier.items()
            if people.refusal(name, request.approvers) or (people.keys.get(name) and not was_proven)
        ]
        return {"problem": problem, "proven": proven, "gone": list(gone)}


def unproven(statement: str, signature: str, keys: Sequence[str], by: str) -> str:
    """Why this is not the statement's signature by one of the keys; empty when it is."""
    with tempfile.TemporaryDirectory(prefix="capuchin-verify-") as folder:
        allowed, given = Path(folder, "allowed"), Path(folder, "signature")
        lines = (f'{_SIGNER} namespaces="{NAMESPACE}" {key}\n' for key in keys)
        allowed.write_text("".join(lines))
        given.write_text(signature)
        try:
            ran = subprocess.run(
                [
                    *("ssh-keygen", "-Y", "verify", "-n", NAMESPACE),
                    *("-f", str(allowed), "-I", _SIGNER, "-s", str(given)),
                ],
                input=statement.encode("utf-8", "surrogatepass"),
                capture_output=True,
                timeout=VERIFY_S,
                check=False,
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )
        except FileNotFoundError:
            return (
                "the worker cannot verify signatures: it has no ssh-keygen (OpenSSH 8.2 or later)"
            )
        except subprocess.TimeoutExpired:
            return "the signature could not be verified in time; decide again"
    if ran.returncode == 0:
        return ""
    said = ""
    with contextlib.suppress(IndexError):
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1][:200]
    return f"the signature is not {by}'s over this decision" + (f" ({said})" if said else "")
