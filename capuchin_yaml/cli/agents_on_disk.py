"""Compile agent files where their code would run, and carry the result over the worker's pipe."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from capuchin_yaml.errors import ModelRejected, RequestRefused
from capuchin_yaml.spec import AgentSpec, JsonValue

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from capuchin_yaml.cli.roster import OnDisk
    from capuchin_yaml.compiler.load import Compiled
    from capuchin_yaml.tools.registry import Registry


def usual_paths() -> tuple[Path, ...]:
    """Where agents are when nobody says: `./agent.yaml`, else `./agents/`; empty without them."""
    if Path("agent.yaml").is_file():
        return (Path("agent.yaml"),)
    return (Path("agents"),) if Path("agents").is_dir() else ()


def compile_agents(
    paths: Sequence[Path], registry: Registry | None = None, profile: str | None = None
) -> list[Compiled]:
    """Every agent that the files and folders mean, compiled, in order.

    Raises:
        RequestRefused: none of them has the profile.
    """
    from capuchin_yaml.compiler.load import compile_file, find_agents

    compiled = [compile_file(path, registry, profile=profile) for path in find_agents(paths)]
    if profile is not None and compiled:
        refuse_unknown_profile(profile, compiled)
    return compiled


def compile_agent(path: Path, profile: str | None = None) -> Compiled:
    """One agent, compiled against the installed packages.

    Raises:
        RequestRefused: it has no profiles, and one was asked for.
    """
    from capuchin_yaml.compiler.load import compile_file

    compiled = compile_file(path, profile=profile)
    if profile is not None:
        refuse_unknown_profile(profile, [compiled])
    return compiled


def refuse_unknown_profile(profile: str, compiled: Sequence[Compiled]) -> None:
    """Refuse a profile where no file has any; a file that has others says so itself.

    Raises:
        RequestRefused: no file has profiles.
    """
    if not any(one.profiles or not one.source for one in compiled):
        names = ", ".join(str(one.path) for one in compiled[:5])
        raise RequestRefused(f"no profile {profile!r}: there are no profiles in {names}")


def shown_problems(compiled: Compiled) -> str:
    """Every diagnostic of one file in its full form, safe for a terminal; empty without any."""
    from capuchin_yaml.compiler.render import report

    return report(compiled.diagnostics, compiled.sources, "full")


def on_disk_json(compiled: Compiled) -> dict[str, JsonValue]:
    """One compiled file as it crosses the pipe; its text parts are safe for a terminal."""
    from capuchin_yaml.compiler.render import concise
    from capuchin_yaml.diagnostics import Severity

    errors = [d for d in compiled.diagnostics if d.severity is Severity.ERROR]
    return {
        "path": str(compiled.path),
        "spec": None if compiled.spec is None else compiled.spec.to_json(),
        "profile": compiled.profile,
        "parts": [str(part) for part in compiled.parts],
        "problems": shown_problems(compiled),
        "rules": list(rule_places(compiled)),
        "headline": concise(errors[0]) if errors else "",
    }


def on_disk_from_json(value: Mapping[str, JsonValue]) -> OnDisk:
    """Read what `on_disk_json` wrote, and choose the model that answers here."""
    # Why here: `validate` needs neither, and starts in half the time without them.
    from capuchin_yaml.cli.answering_model import answering_model, forced_model
    from capuchin_yaml.cli.roster import OnDisk

    path = Path(value["path"])
    spec = None if value["spec"] is None else AgentSpec.from_json(value["spec"])
    problems, headline = str(value["problems"]), str(value["headline"])
    parts = tuple(Path(part) for part in value.get("parts", ()))
    if spec is None:
        return OnDisk(path, None, problems, headline, parts=parts)
    wanted = ungranted(spec, path, value.get("profile"))
    if wanted:
        return OnDisk(path, None, f"error: {wanted}", wanted, parts=parts)
    try:
        model = answering_model(spec.model, settings=spec.model_settings)
    except ModelRejected as error:
        return OnDisk(path, None, f"error: {error}", str(error), parts=parts)
    is_stand_in = model.wanted is not None and forced_model() is None
    rules = tuple(str(place) for place in value.get("rules", ()))
    return OnDisk(path, spec, problems, headline, model.name, is_stand_in, parts, rules)


def rule_places(compiled: Compiled) -> tuple[str, ...]:
    """Where each rule of an agent stands, by file and line; no path of this machine."""
    if compiled.spec is None or compiled.document is None:
        return ()
    spans = [
        compiled.document.value_span(("approval", "rules", n))
        for n in range(len(compiled.spec.approval.rules))
    ]
    return tuple(f"{_shown(Path(span.path))}:{span.line}" for span in spans)


def _shown(path: Path) -> str:
    """A path below the folder that the program was started in, else the name alone."""
    with contextlib.suppress(ValueError):
        return str(path.absolute().relative_to(Path.cwd()))
    return path.name


def ungranted(spec: AgentSpec, path: Path, profile: str | None = None) -> str:
    """Why the agent does not start here for want of a grant, and what to type; else empty."""
    from capuchin_yaml.compiler.operator_config import read_operator_config
    from capuchin_yaml.policy.needs import is_granted, needs_of

    needs = needs_of(spec)
    if is_granted(spec.name, needs, read_operator_config().grants):
        return ""
    wanted = ", ".join(str(need) for need in needs)
    chosen = f" --profile {profile}" if profile is not None else ""
    return (
        f"{spec.name} needs {wanted}, which is not granted here; "
        f"type: capuchin trust {path}{chosen}"
    )


def code_roots(specs: Iterable[AgentSpec]) -> tuple[Path, ...]:
    """Folders (or single files) of the code behind these agents' tools that can change in place.

    That is the code of distributions installed in editable form; others change by installing.
    """
    from importlib.metadata import entry_points

    from capuchin_yaml.tools.registry import GROUP

    used = {tool.identity.partition(".")[0] for spec in specs for tool in spec.tools}
    roots: set[Path] = set()
    for entry in entry_points(group=GROUP):
        if entry.name in used and entry.dist is not None and _is_editable(entry.dist):
            roots.update(_places(entry.module))
    return tuple(sorted(roots))


def _is_editable(distribution: Distribution) -> bool:
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        return bool(origin.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError, OSError):
        return False


def _places(module_name: str) -> Iterable[Path]:
    module = sys.modules.get(module_name.partition(".")[0])
    if module is None:
        return
    folders = getattr(module, "__path__", None)
    if folders is not None:
        yield from (Path(folder) for folder in folders)
    elif module.__file__ is not None:
        yield Path(module.__file__)
