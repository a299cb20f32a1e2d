"""Grants are added to the operator's config, and nothing else in it changes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from capuchin_yaml.compiler.operator_config import read_operator_config
from capuchin_yaml.compiler.operator_grants import add_grants
from capuchin_yaml.errors import UnsafeState
from capuchin_yaml.policy.needs import Need, grant_of

ONE = grant_of("a", (Need("A", "x.y"),))
TWO = grant_of("b", (Need("B", "x.y"), Need("C", "x.z")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "capuchin" / "config.yaml"


def test_a_missing_file_is_made_for_this_user_alone(path: Path) -> None:
    add_grants(read_operator_config(path), [ONE, TWO])

    assert read_operator_config(path).grants == (ONE, TWO)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "text",
    [
        "# mine\nfloor: []  # none\n",
        "# mine\nfloor: []",
        "trust: []\n# end\n",
        "trust:\n# nothing yet\n- {agent: z, hash: z, needs: []}\nfloor: []\n",
        "trust:\n  - agent: z\n    hash: z\n    needs: []\n# end\n",
        "trust: [{agent: z, hash: z, needs: []}]\nx-end: 1\n",
    ],
)
def test_every_other_line_stays(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    before = read_operator_config(path)

    add_grants(before, [ONE])

    after = read_operator_config(path)
    assert set(after.grants) == {*before.grants, ONE}
    assert after.floor == before.floor
    for line in text.splitlines():
        if not line.startswith("trust:"):
            assert line in path.read_text().splitlines()


def test_a_second_grant_joins_the_first(path: Path) -> None:
    add_grants(read_operator_config(path), [ONE])
    add_grants(read_operator_config(path), [TWO])

    assert set(read_operator_config(path).grants) == {ONE, TWO}


def test_a_file_with_mistakes_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("floor: [")

    with pytest.raises(UnsafeState, match="cannot be used"):
        add_grants(read_operator_config(path), [ONE])

    assert path.read_text() == "floor: ["
