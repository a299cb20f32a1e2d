"""Where large values go: never where another machine could not read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from capuchin_yaml.client.home import Home
from capuchin_yaml.client.project_store import project_store
from capuchin_yaml.client.target import Target
from capuchin_yaml.errors import UnsafeState

OWN = Target(address="127.0.0.1:7233", origin="own")
CLUSTER = Target(address="temporal.example:7233", origin="environment")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.find(tmp_path).open(create=True)


def test_our_own_server_has_the_state_folders_store(home: Home) -> None:
    store = project_store(home, OWN)

    assert store is not None
    assert store.folder == home.store_dir


def test_on_a_cluster_values_stay_in_history(home: Home) -> None:
    assert project_store(home, CLUSTER) is None


def test_a_named_folder_is_used_on_any_server(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("CAPUCHIN_STORE", str(shared))

    stores = [project_store(home, target) for target in (OWN, CLUSTER)]

    assert [s.folder for s in stores if s is not None] == [shared, shared]


def test_a_named_folder_that_is_not_there_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPUCHIN_STORE", str(tmp_path / "nowhere"))

    with pytest.raises(UnsafeState, match="not a folder"):
        project_store(home, CLUSTER)
