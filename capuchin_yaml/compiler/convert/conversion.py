"""A file of another agent format -> a new agent.yaml, and a report of what it does not carry.

Nothing that asked before runs alone after: tools of other formats are not bound to packages here,
and where there were any the new agent asks before every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from capuchin_yaml.compiler.convert import claude_code, docker_agent, llm_template, pydantic_ai
from capuchin_yaml.compiler.convert.draft import Draft, agent_text
from capuchin_yaml.compiler.convert.source import FillIn, Loss, Source
from capuchin_yaml.compiler.document import Document, read_document
from capuchin_yaml.compiler.load import Compiled, compile_bytes
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.diagnostics import Diagnostic

Kind: TypeAlias = Literal["docker-agent", "pydantic-ai", "claude-code", "llm"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_STAND_IN = "You are a helpful assistant.\n"


class CannotConvert(Exception):
    """The file is none that can be converted; the text says why and what to type."""

    def __init__(self, message: str, found: Sequence[Diagnostic] = (), source: str = "") -> None:
        super().__init__(message)
        self.diagnostics = tuple(found)
        """What is wrong with the old file's YAML."""
        self.source = source


@dataclass(frozen=True, slots=True)
class Conversion:
    """A new agent file, and what it does not carry."""

    kind: Kind
    name: str
    text: str
    losses: tuple[Loss, ...]
    fill_ins: tuple[FillIn, ...]
    compiled: Compiled
    """The new file, compiled where it was asked to lie."""


def convert(
    data: bytes,
    path: Path,
    target: Path,
    *,
    kind: Kind | None = None,
    agent: str | None = None,
    registry: ToolSource | None = None,
) -> Conversion:
    """Convert the content of the file at `path` into one that will lie at `target`.

    Raises:
        CannotConvert: it cannot be read, or is of no known kind; or it has no such agent.
    """
    document, prompt = _read(data, path, kind)
    chosen = kind or _kind_of(document, prompt, path)
    source = Source(document)
    draft = Draft()
    match chosen:
        case "docker-agent":
            _check_agent(source, agent)
            docker_agent.convert(source, draft, path.stem, agent)
        case "pydantic-ai":
            pydantic_ai.convert(source, draft, path.stem)
        case "claude-code":
            claude_code.convert(source, draft, path.stem, prompt or "")
        case "llm":
            llm_template.convert(source, draft, path.stem)
    if agent is not None and chosen != "docker-agent":
        raise CannotConvert(f"a {chosen} file holds one agent, so --agent names nothing")
    _complete(source, draft)
    text = agent_text(draft, chosen)
    compiled = compile_bytes(text.encode("utf-8", "surrogatepass"), target, registry)
    return Conversion(chosen, draft.name, text, source.losses, source.fill_ins, compiled)


def _read(data: bytes, path: Path, kind: Kind | None) -> tuple[Document, str | None]:
    """The file as a document, and the prompt that stands behind it in Markdown."""
    is_markdown = kind == "claude-code" or (kind is None and path.suffix.lower() == ".md")
    if is_markdown:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CannotConvert(f"{path} is not UTF-8, at byte {error.start}") from error
        parts = claude_code.split(text, str(path))
        if parts is None:
            raise CannotConvert(
                f"{path} has no keys in front: the first line of a subagent is ---, "
                "and a line --- ends them"
            )
        document, prompt = parts
    else:
        document, prompt = read_document(str(path), data), None
    # A tab is a matter of taste elsewhere; of what else is wrong, two programs make two things.
    wrong = [d for d in document.diagnostics if d.id != "tab"]
    if document.root is None or wrong:
        raise CannotConvert(f"{path} cannot be read", wrong, document.source.text)
    if document.root.kind != "map" and (kind != "llm" or document.root.kind != "scalar"):
        raise CannotConvert(f"{path} is no map of keys; a plain prompt of llm takes --from llm")
    return document, prompt


def _kind_of(document: Document, prompt: str | None, path: Path) -> Kind:
    root = document.root
    assert root is not None
    keys = frozenset(root.entries)
    if prompt is not None:
        return "claude-code"
    if "apiVersion" in keys:
        raise CannotConvert(f"{path} is an agent.yaml already; capuchin validate checks it")
    if "agents" in keys:
        return "docker-agent"
    fits: list[Kind] = []
    if keys and keys <= pydantic_ai.KEYS:
        fits.append("pydantic-ai")
    if keys and keys <= llm_template.KEYS:
        fits.append("llm")
    if len(fits) == 1:
        return fits[0]
    said = "could be " + " or ".join(fits) if fits else "is of no kind that is known"
    raise CannotConvert(f"{path} {said}; say which with --from: {', '.join(KINDS)}")


def _check_agent(source: Source, agent: str | None) -> None:
    names = docker_agent.agents_in(source)
    if not names:
        raise CannotConvert("a docker-agent file has its agents under `agents`; here are none")
    if agent is not None and agent not in names:
        raise CannotConvert(f"there is no agent {shown(agent)}; there are {', '.join(names)}")


def _complete(source: Source, draft: Draft) -> None:
    """Put a stand-in where the format needs something that the old file does not have."""
    if not draft.name:
        draft.name = "converted"
        source.fill_in((), "name", "the old name holds no letter or digit of a slug")
    if not draft.prompt.strip():
        draft.prompt = _STAND_IN
        source.fill_in((), "prompt", "the old file has none; a stand-in is there")
