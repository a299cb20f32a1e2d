"""AgentSpec: what one agent.yaml means once compiled. Immutable, JSON-safe, hashed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonValue: TypeAlias = Any
"""What JSON can hold: None, bool, int, finite float, str, lists, and dicts with text keys."""

Effect: TypeAlias = Literal["read", "write", "destructive"]
PolicyName: TypeAlias = Literal["default", "auto", "all", "allowlist", "denylist"]
OnTimeout: TypeAlias = Literal["deny", "wait", "escalate", "close"]
RuleAnswer: TypeAlias = Literal["allow", "ask", "deny"]
VariableType: TypeAlias = Literal["string", "integer", "number", "boolean"]
PriceType: TypeAlias = Literal["free", "per_call", "per_conversation", "per_token"]
BudgetPer: TypeAlias = Literal["conversation", "day"]
OnExceed: TypeAlias = Literal["ask", "stop", "warn"]

DEFAULT_TOOL_TIMEOUT_S = 60.0

TOKENS_PRICED = 1_000_000
"""Tokens that a price per token is for, where the file does not say."""

_LATER = (
    ("approval", "rules"),
    ("price", "input"),
    ("price", "output"),
    ("price", "unit"),
    ("model_settings", "base_url"),
    ("model_settings", "key_variable"),
    ("model_settings", "fallback"),
    ("", "model_settings"),
    ("", "budget"),
)
"""Block and key of what came after the first release; `""` is the top."""
_TERMS = ("approvers", "quorum", "exclude_requester", "escalate_to", "remind_s")
"""The same for `approval` and its rules, where a default may be more than None."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as this agent uses it, pinned with all that its approval is bound to."""

    identity: str
    """`<entry point>.<tool>`, such as `billing.issue_refund`."""
    alias: str
    """The name that the model sees."""
    description: str
    input_schema: Mapping[str, JsonValue]
    effect: Effect
    idempotent: bool
    needs_approval: bool
    """The tool's author asks for a person before every call."""
    tool_version: str
    distribution: str
    distribution_version: str
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    timeout_s: float = DEFAULT_TOOL_TIMEOUT_S
    """Longest run of one call, from entering the tool."""

    @property
    def repeatable(self) -> bool:
        """Whether Temporal may run the call again after a failure."""
        return self.idempotent or self.effect == "read"


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """One rule: what it says of the calls that it is about and whose condition holds."""

    then: RuleAnswer
    tool: str | None = None
    """Identity, alias or `package.*`, as written; None is every tool."""
    when: str | None = None
    """The condition in CEL, as written; None always holds."""
    reason: str = ""
    """Why, for the model and for whoever decides."""
    runs: str | None = None
    """The condition as it is run, where that differs from `when`: `2.0` beside a number."""
    approvers: str | None = None
    """For `ask`, as all that follows: in place of what the block says. A group of people."""
    quorum: int | None = None
    exclude_requester: bool | None = None
    timeout_s: float | None = None
    on_timeout: OnTimeout | None = None
    escalate_to: str | None = None
    remind_s: float | None = None


@dataclass(frozen=True, slots=True)
class ApprovalSpec:
    """Which calls wait for a person, and what happens when nobody answers."""

    policy: PolicyName = "default"
    """`default` is no approval block at all: `read` runs, every other tool asks."""
    tools: tuple[str, ...] = ()
    """As written: an entry with a dot is an identity, one without is an alias."""
    timeout_s: float | None = None
    """Time a person has, from the ask; None waits for ever."""
    on_timeout: OnTimeout = "deny"
    approvers: str | None = None
    """The group of the operator's config whose people may decide; None is anyone."""
    quorum: int = 1
    """How many different people must approve."""
    exclude_requester: bool = False
    """Whether who asked for a call, by message or edit, may not approve it."""
    escalate_to: str | None = None
    """The group that may decide as well when the time is up and `on_timeout` is `escalate`."""
    remind_s: float | None = None
    """Time between two reminders; None reminds nobody."""
    rules: tuple[RuleSpec, ...] = ()
    """Before policy and list: any that matches and denies, else the first that matches."""

    def groups(self) -> tuple[str, ...]:
        """The groups of people that are named anywhere in it, sorted."""
        places: tuple[ApprovalSpec | RuleSpec, ...] = (self, *self.rules)
        named = {group for p in places for group in (p.approvers, p.escalate_to)}
        return tuple(sorted(group for group in named if group is not None))


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one user message; reaching one pauses the turn and offers to go on."""

    max_steps: int = 8
    """Model calls."""
    max_tool_calls: int = 40
    max_parallel_calls: int = 8
    same_call: int = 5
    """Calls of one tool with the very same arguments."""
    idle_close_s: float | None = None
    """Time after which an idle conversation is closed; None never closes one."""


@dataclass(frozen=True, slots=True)
class VariableSpec:
    """One template variable; without a default the starter must give it."""

    type: VariableType = "string"
    default: str | int | float | bool | None = None
    required: bool = False
    enum: tuple[str | int | float | bool, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class PriceSpec:
    """What the agent costs its user; amounts are plain decimal strings."""

    type: PriceType = "free"
    amount: str | None = None
    currency: str | None = None
    min: str | None = None
    min_margin: str | None = None
    input: str | None = None
    """Of `unit` tokens that the model reads."""
    output: str | None = None
    """Of `unit` tokens that the model writes."""
    unit: int | None = None
    """Tokens; only with `per_token`."""


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """What the model may cost or use, and what happens then; one of the two is set."""

    max_usd: str | None = None
    """A plain decimal string."""
    max_tokens: int | None = None
    """Read and written together."""
    per: BudgetPer = "conversation"
    on_exceed: OnExceed = "ask"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a marketplace shows of the agent."""

    license: str | None = None
    author: str | None = None
    homepage: str | None = None
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How the agent's own model is asked; None leaves it to the provider or to us."""

    max_tokens: int | None = None
    """Longest reply."""
    temperature: float | None = None
    thinking_tokens: int | None = None
    """Tokens of `max_tokens` that the model may think with."""
    timeout_s: float | None = None
    """Longest wait for one reply, from the question to its end."""
    base_url: str | None = None
    """Another address than the provider's own; a need."""
    key_variable: str | None = None
    """Variable of the worker's environment with another key than the provider's own; a need."""
    fallback: tuple[ModelChoice, ...] = ()
    """Asked in this order while those before cannot answer; theirs is always empty."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that is asked in another one's place, and how."""

    name: str
    settings: ModelSettings = field(default_factory=ModelSettings)


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One compiled agent: equal files and tool packages give an equal `definition_hash`."""

    name: str
    prompt: str
    """The Jinja2 source; it is rendered with the variables of each conversation."""
    api_version: str = "capuchin/v1"
    version: str = "0.0.0"
    description: str = ""
    model: str | None = None
    """`provider:name`; None leaves the choice to the worker."""
    model_settings: ModelSettings = ModelSettings()
    """For `model` alone: another one that answers in its place is asked as it likes."""
    variables: Mapping[str, VariableSpec] = field(default_factory=dict)
    injected: tuple[str, ...] = ()
    """Names of values that tools see and the model never does."""
    tools: tuple[ToolSpec, ...] = ()
    approval: ApprovalSpec = ApprovalSpec()
    limits: Limits = Limits()
    budget: BudgetSpec | None = None
    price: PriceSpec = PriceSpec()
    listing: Listing = Listing()

    def tool_by_alias(self, alias: str) -> ToolSpec | None:
        """The tool that the model calls `alias`, or None."""
        return next((t for t in self.tools if t.alias == alias), None)

    def to_json(self) -> dict[str, JsonValue]:
        """The spec as plain JSON values, fit for history and `from_json`.

        Keys that came after the first release are left out while they say nothing, so a file
        that does not use them keeps its hash.
        """
        plain: dict[str, JsonValue] = _plain(dataclasses.asdict(self))
        for block, key in _LATER:
            inside = plain[block] if block else plain
            if _says_nothing(inside[key]):
                del inside[key]
        _without_defaults(plain["approval"], ApprovalSpec, _TERMS)
        for rule in plain["approval"].get("rules", ()):
            _without_defaults(rule, RuleSpec, (*_TERMS, "timeout_s", "on_timeout"))
        return plain

    @property
    def definition_hash(self) -> str:
        """Hex SHA-256 of the canonical JSON of the spec."""
        return definition_hash(self.to_json())

    @classmethod
    def from_json(cls, value: Mapping[str, JsonValue]) -> AgentSpec:
        """Rebuild a spec; keys of a later release are ignored, keys it lacks take their default."""
        kept = _known(cls, value)
        kept["variables"] = {
            name: VariableSpec(**_tupled(_known(VariableSpec, v), "enum"))
            for name, v in dict(value.get("variables", {})).items()
        }
        kept["injected"] = tuple(value.get("injected", ()))
        kept["tools"] = tuple(ToolSpec(**_known(ToolSpec, t)) for t in value.get("tools", ()))
        approval = _tupled(_known(ApprovalSpec, value.get("approval", {})), "tools")
        approval["rules"] = tuple(
            RuleSpec(**_known(RuleSpec, rule)) for rule in approval.get("rules", ())
        )
        kept["approval"] = ApprovalSpec(**approval)
        kept["model_settings"] = _settings(value.get("model_settings", {}))
        budget = value.get("budget")
        kept["budget"] = BudgetSpec(**_known(BudgetSpec, budget)) if budget else None
        kept["limits"] = Limits(**_known(Limits, value.get("limits", {})))
        kept["price"] = PriceSpec(**_known(PriceSpec, value.get("price", {})))
        kept["listing"] = Listing(
            **_tupled(_known(Listing, value.get("listing", {})), "categories", "tags")
        )
        return cls(**kept)


def canonical_json(value: JsonValue) -> str:
    """One text per value: sorted keys, no blanks, UTF-8 as itself, finite numbers only.

    Raises:
        ValueError: NaN or an infinity.
        TypeError: a value that JSON cannot hold.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def definition_hash(spec: Mapping[str, JsonValue]) -> str:
    """Hex SHA-256 of the canonical JSON of a spec in its JSON form."""
    return hashlib.sha256(canonical_json(spec).encode("utf-8", "surrogatepass")).hexdigest()


def _without_defaults(inside: dict[str, Any], cls: type, names: tuple[str, ...]) -> None:
    """Take out the keys that say what they say when they are absent."""
    defaults = {f.name: f.default for f in dataclasses.fields(cls)}
    for name in names:
        if inside[name] == defaults[name]:
            del inside[name]


def _settings(value: Mapping[str, JsonValue]) -> ModelSettings:
    kept = _known(ModelSettings, value)
    kept["fallback"] = tuple(
        ModelChoice(choice["name"], _settings(choice.get("settings", {})))
        for choice in kept.get("fallback", ())
    )
    return ModelSettings(**kept)


def _says_nothing(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return all(_says_nothing(inner) for inner in value.values())
    return value is None or value == []


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _known(cls: type, value: Mapping[str, JsonValue]) -> dict[str, Any]:
    names = {f.name for f in dataclasses.fields(cls)}
    return {k: v for k, v in value.items() if k in names}


def _tupled(kept: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if name in kept:
            kept[name] = tuple(kept[name])
    return kept
