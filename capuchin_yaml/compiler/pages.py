"""The page of each diagnostic, cut from the reference that people read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from capuchin_yaml.schema_files import diagnostics_page

_HEADING = re.compile(r"^(#{2,3}) (.+)$", re.MULTILINE)


@cache
def diagnostic_pages() -> Mapping[str, str]:
    """The text of every diagnostic's section, without its heading, by id."""
    text = diagnostics_page()
    headings = list(_HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return {
        heading.group(2): text[heading.end() : end].strip()
        for heading, end in zip(headings, ends, strict=True)
        if heading.group(1) == "###"
    }
