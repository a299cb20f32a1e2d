"""Orders and refunds, as tools of capuchin-yaml."""

from capuchin_billing.tools import package

__all__ = ["package"]
