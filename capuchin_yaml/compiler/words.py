"""Words that are not keys of this version: foreign ones, later ones, and the operator's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Place: TypeAlias = str
"""Where a key stands: `""` is the top, `tools[]` an entry of tools, `variables[]` one variable."""

LATER_KEYS: Mapping[Place, frozenset[str]] = {
    "": frozenset({"output_schema", "context", "mcp_servers"}),
    "tools[]": frozenset({"agent", "variables"}),
}
"""Keys of the format that this version does not carry out yet."""

LATER_VALUES: Mapping[str, frozenset[str]] = {}
"""Values of the format that this version does not carry out yet."""

OPERATOR_KEYS: Mapping[str, str] = {
    "floor": "the floor of every agent",
    "gate": "the gate before every call",
    "authorizer": "the authorizer of calls",
    "notify": "who is told of waiting items",
    "people": "the keys of people",
    "groups": "who belongs to a group of people",
    "budgets": "the budgets of a project",
    "project_budget": "the budget of a project",
    "grants": "what an agent is trusted with",
}
"""What only the operator of the worker decides, and what it is."""

OPERATOR_CONFIG = "~/.config/capuchin/config.yaml"

_TOP: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "instructions",
            "instruction",
            "system",
            "system_prompt",
            "systemPrompt",
            "system_message",
            "persona",
            "backstory",
            "goal",
            "developer_message",
        ),
        "prompt",
    ),
    **dict.fromkeys(
        (
            "max_turns",
            "maxTurns",
            "max_iterations",
            "max_iter",
            "max_rounds",
            "max_loops",
            "recursion_limit",
        ),
        "limits.max_steps",
    ),
    **dict.fromkeys(("max_concurrency", "parallel_tool_calls"), "limits.max_parallel_calls"),
    **dict.fromkeys(
        (
            "permissions",
            "permission_mode",
            "permissionMode",
            "human_in_the_loop",
            "human_input",
            "human_input_mode",
            "interrupt_on",
            "require_approval",
            "requires_approval",
            "approvals",
        ),
        "approval",
    ),
    **dict.fromkeys(
        ("allowlist", "allowed_tools", "allowedTools"),
        "approval: {policy: allowlist, tools: [package.tool]}",
    ),
    **dict.fromkeys(
        ("denylist", "disallowed_tools", "disallowedTools"),
        "approval: {policy: denylist, tools: [package.tool]}",
    ),
    **dict.fromkeys(("functions", "toolsets", "toolset", "actions", "plugins", "skills"), "tools"),
    **dict.fromkeys(("mcp", "mcpServers"), "mcp_servers"),
    **dict.fromkeys(("llm", "model_name", "model_id", "provider", "engine"), "model"),
    **dict.fromkeys(("inputs", "input_variables", "parameters", "params", "vars"), "variables"),
    **dict.fromkeys(("id", "title", "slug", "agent"), "name"),
    **dict.fromkeys(("pricing", "cost", "billing"), "price"),
    **dict.fromkeys(("response_format", "output_type", "response_schema"), "output_schema"),
    **dict.fromkeys(("inherits", "inherit", "base", "parent", "include"), "extends"),
    **dict.fromkeys(("environments", "overrides", "variants"), "profiles"),
    **dict.fromkeys(("max_cost", "max_budget", "max_price", "cost_limit"), "budget.max_usd"),
    "schema": "apiVersion",
    "kind": "apiVersion",
    "summary": "description",
    "licence": "listing.license",
}

_FOREIGN: Mapping[Place, Mapping[str, str]] = {
    "": _TOP,
    "tools[]": {
        **dict.fromkeys(("name", "tool", "ref", "type", "id", "function"), "use"),
        **dict.fromkeys(("alias", "rename", "label"), "as"),
        **dict.fromkeys(("settings", "options", "params", "parameters", "args", "with"), "config"),
        **dict.fromkeys(("timeout_s", "timeout_seconds", "time_limit"), "timeout"),
    },
    "approval": {
        **dict.fromkeys(("mode", "type", "default", "strategy"), "policy"),
        **dict.fromkeys(
            ("allowlist", "allow", "allowed", "allowed_tools", "whitelist"),
            "policy: allowlist, with tools: [package.tool]",
        ),
        **dict.fromkeys(
            ("denylist", "deny", "denied", "require", "blocklist", "blacklist"),
            "policy: denylist, with tools: [package.tool]",
        ),
        **dict.fromkeys(("list", "functions"), "tools"),
        **dict.fromkeys(("conditions", "policies", "rule"), "rules"),
        **dict.fromkeys(("ttl", "expires", "deadline", "wait"), "timeout"),
        **dict.fromkeys(
            ("on_expire", "default_action", "timeout_action", "fallback"), "on_timeout"
        ),
    },
    "model": {
        **dict.fromkeys(("model", "id", "model_name", "provider"), "name"),
        **dict.fromkeys(("max_output_tokens", "maxTokens", "max_completion_tokens"), "max_tokens"),
        **dict.fromkeys(("reasoning", "thinking_budget", "budget_tokens"), "thinking"),
        **dict.fromkeys(("timeout_s", "request_timeout"), "timeout"),
        **dict.fromkeys(("fallbacks", "fallback_models", "backup", "backups"), "fallback"),
        **dict.fromkeys(("api_base", "baseURL", "baseUrl", "endpoint", "url", "host"), "base_url"),
        **dict.fromkeys(("key", "apiKey", "token", "api_key_env"), "api_key: {env: MY_API_KEY}"),
        "temp": "temperature",
    },
    "budget": {
        **dict.fromkeys(("usd", "max_cost", "amount", "limit", "max", "cost"), "max_usd"),
        **dict.fromkeys(("tokens", "max_total_tokens", "token_limit"), "max_tokens"),
        **dict.fromkeys(("period", "scope", "window", "every"), "per"),
        **dict.fromkeys(("on_limit", "action", "then", "when_exceeded"), "on_exceed"),
    },
    "prompt": {
        **dict.fromkeys(("path", "template", "from", "src", "source", "include"), "file"),
    },
    "requires": {
        **dict.fromkeys(("plugins", "distributions", "tools", "dependencies"), "packages"),
        **dict.fromkeys(("capuchin_yaml", "capuchin-yaml", "version", "engine"), "capuchin"),
    },
    "rules[]": {
        **dict.fromkeys(("if", "condition", "match", "cel", "expression", "expr"), "when"),
        **dict.fromkeys(("action", "decision", "effect", "verdict", "do", "policy"), "then"),
        **dict.fromkeys(("name", "use", "tools", "identity", "on"), "tool"),
        **dict.fromkeys(("message", "because", "description", "why"), "reason"),
    },
    "limits": {
        **dict.fromkeys(
            (
                "max_turns",
                "max_turn",
                "max_iterations",
                "max_iter",
                "max_rounds",
                "max_model_calls",
                "recursion_limit",
                "turns",
                "steps",
            ),
            "max_steps",
        ),
        **dict.fromkeys(("max_calls", "tool_calls"), "max_tool_calls"),
        **dict.fromkeys(
            ("max_concurrency", "parallel", "concurrency", "parallel_tool_calls"),
            "max_parallel_calls",
        ),
    },
    "variables[]": {
        **dict.fromkeys(("value", "val"), "default"),
        **dict.fromkeys(("values", "choices", "options", "allowed"), "enum"),
        **dict.fromkeys(("kind", "format"), "type"),
        **dict.fromkeys(("desc", "help", "title", "label"), "description"),
        "optional": "required",
    },
    "price": {
        **dict.fromkeys(("model", "kind", "per", "mode"), "type"),
        **dict.fromkeys(("input_tokens", "prompt", "in"), "input"),
        **dict.fromkeys(("output_tokens", "completion", "out"), "output"),
        **dict.fromkeys(("cost", "value", "price", "usd", "rate"), "amount"),
        **dict.fromkeys(("margin",), "min_margin"),
    },
    "listing": {
        **dict.fromkeys(("url", "website", "link"), "homepage"),
        **dict.fromkeys(("authors", "publisher", "vendor"), "author"),
        **dict.fromkeys(("keywords", "labels"), "tags"),
        "licence": "license",
        "category": "categories",
    },
}


_FOREIGN_VALUES: Mapping[str, Mapping[str, str]] = {
    "policy": {
        # Only toward asking more: a word that means "never ask" is listed, not suggested.
        **dict.fromkeys(("always", "ask", "manual", "required", "human", "yes", "on"), "all"),
        **dict.fromkeys(("whitelist", "allowed"), "allowlist"),
        **dict.fromkeys(("blacklist", "blocklist", "denied"), "denylist"),
    },
    "then": {
        **dict.fromkeys(("block", "reject", "refuse", "forbid", "never"), "deny"),
        **dict.fromkeys(("approve", "prompt", "confirm", "review", "hold", "pause"), "ask"),
        **dict.fromkeys(("run", "permit", "pass", "accept"), "allow"),
    },
    "on_timeout": {
        **dict.fromkeys(("reject", "refuse", "decline", "fail"), "deny"),
        **dict.fromkeys(("cancel", "end", "stop", "abort"), "close"),
        **dict.fromkeys(("ignore", "keep", "pending", "none"), "wait"),
    },
    "type": {
        **dict.fromkeys(("per_message", "per_turn", "per_request", "per_reply"), "per_call"),
        **dict.fromkeys(("per_session", "per_chat", "flat"), "per_conversation"),
        **dict.fromkeys(("none", "gratis"), "free"),
        **dict.fromkeys(("str", "text"), "string"),
        **dict.fromkeys(("int", "whole"), "integer"),
        **dict.fromkeys(("float", "decimal", "double"), "number"),
        "bool": "boolean",
    },
}


SAME_VALUE: Mapping[Place, frozenset[str]] = {
    "": frozenset(
        {"instructions", "instruction", "system", "system_prompt", "systemPrompt", "system_message"}
    ),
    "listing": frozenset({"licence", "keywords"}),
}
"""Foreign words whose value means here what it meant there, so that the key alone is changed.

None is about approval: a word of another format never decides what runs without asking."""


def our_value(key: str, word: str) -> str | None:
    """What another format's value `word` of `key` is called here, or None."""
    return _FOREIGN_VALUES.get("policy" if key == "approval" else key, {}).get(word)


def our_word(place: Place, word: str) -> str | None:
    """What another format's key `word` is called here, or None for a word nobody uses.

    `a.b` is the key b of the block a; what follows `: ` is an example of its value.
    """
    return _FOREIGN.get(place, {}).get(word)


def foreign_words(place: Place) -> Mapping[str, str]:
    """Other formats' keys at this place, each with what it is called here."""
    return _FOREIGN.get(place, {})
