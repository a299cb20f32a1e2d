"""What the TUI may load before its first frame."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("temporalio", "anthropic", "pydantic", "jsonschema", "jinja2", "markdown_it")


def test_the_app_loads_no_client_and_no_sdk_before_it_paints() -> None:
    code = "import sys, capuchin_yaml.tui.app; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert set(HEAVY) & set(loaded.stdout.split()) == set()


def test_no_module_of_the_tui_loads_activities_models_or_tools() -> None:
    code = "import sys, capuchin_yaml.tui.app, capuchin_yaml.tui.live; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    rooms = ("capuchin_yaml.models", "capuchin_yaml.tools", "capuchin_yaml.engine.activities")
    names = loaded.stdout.split()
    assert [n for n in names if n.startswith(rooms) or n == "anthropic"] == []
