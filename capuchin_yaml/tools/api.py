"""All that the author of a tool package imports."""

from capuchin_yaml.errors import InvalidTool, ToolFailed, ToolUnavailable
from capuchin_yaml.spec import Effect
from capuchin_yaml.tools.context import ToolContext
from capuchin_yaml.tools.definition import Tool, ToolPackage, tool

__all__ = [
    "Effect",
    "InvalidTool",
    "Tool",
    "ToolContext",
    "ToolFailed",
    "ToolPackage",
    "ToolUnavailable",
    "tool",
]
