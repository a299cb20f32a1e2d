"""Somebody else on this machine: `python -m tests.e2e.stranger JOB` gives up its rights and tries.

JOB is `{"folder", "home", "environ", "verbs": [[..]], "files": [..]}`; the answer on stdout is
`{"uid", "ran": [{"code", "out", "err"}], "read": [files that could be read]}`. Everything is
imported first: as another user, neither this checkout nor its packages can be read any more.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import sys
from typing import Any

import capuchin_yaml
from capuchin_yaml.cli.app import VERBS, run
from capuchin_yaml.cli.output import Output

NOBODY = 65534
"""A user with no rights of its own, on Linux and macOS."""


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Become nobody where that is possible, and try what the job says."""
    load_everything(job)
    os.chdir(job["folder"])
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    os.environ.update(job["environ"])
    return {
        "uid": os.geteuid(),
        "ran": [ran(verb) for verb in job["verbs"]],
        "read": [file for file in job["files"] if is_readable(file)],
    }


def load_everything(job: dict[str, Any]) -> None:
    """Import the program, and run its verbs once where nothing is."""
    for module in pkgutil.walk_packages(capuchin_yaml.__path__, "capuchin_yaml."):
        importlib.import_module(module.name)
    os.chdir(job["home"])
    for verb in VERBS:
        ran([verb, "--help"])
    ran(["list"])


def ran(args: list[str]) -> dict[str, Any]:
    """One verb of the program, in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = run(args, Output(out, err))
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def is_readable(file: str) -> bool:
    """Whether this user can open it."""
    try:
        with open(file, "rb") as stream:
            stream.read(1)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    answer = json.dumps(main(json.loads(sys.argv[1])))
    os.write(1, answer.encode())
    # Why so hard: the SDK's threads may log into an interpreter that is shutting down.
    os._exit(0)
