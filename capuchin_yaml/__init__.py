"""Agents declared in YAML, run as durable conversations."""

__version__ = "0.1.0"
