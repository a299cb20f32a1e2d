"""All that the author of a tool package imports."""

from capuchin_yaml.errors import InvalidTool, ToolCancelled, ToolFailed, ToolUnavailable
from capuchin_yaml.spec import Effect
from capuchin_yaml.tools.child import CompletedRun
from capuchin_yaml.tools.context import ToolContext
from capuchin_yaml.tools.definition import Tool, ToolPackage, tool
from capuchin_yaml.tools.preview import preview_hash
from capuchin_yaml.tools.tool_result import Artifact, ToolResult

__all__ = [
    "Artifact",
    "CompletedRun",
    "Effect",
    "InvalidTool",
    "Tool",
    "ToolCancelled",
    "ToolContext",
    "ToolFailed",
    "ToolPackage",
    "ToolResult",
    "ToolUnavailable",
    "preview_hash",
    "tool",
]
