"""The state folder is used only when it is ours alone, and its key is ours alone."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from capuchin_yaml.client.home import Home, project_name
from capuchin_yaml.errors import RequestRefused, ServerUnavailable, UnsafeState

NOBODY = 65534
MARK = "home.json"


def made(folder: Path) -> Home:
    folder.mkdir(parents=True, exist_ok=True)
    return Home.find(folder).open(create=True)


def modes(home: Home) -> set[str]:
    return {f"{stat.S_IMODE(path.stat().st_mode):o}" for path in home.path.rglob("*")}


@pytest.mark.parametrize(
    ("agents", "expected"),
    [("shop", "shop"), ("shop/agents", "shop"), ("shop/agent.yaml", "shop"), ("shop/x", "shop/x")],
)
def test_the_state_is_beside_the_agents(tmp_path: Path, agents: str, expected: str) -> None:
    (tmp_path / "shop/agents").mkdir(parents=True)
    (tmp_path / "shop/agent.yaml").touch()

    assert Home.find(tmp_path / agents).path == tmp_path / expected / ".capuchin"


def test_every_verb_finds_the_state_from_the_project_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents").mkdir()
    monkeypatch.chdir(tmp_path)
    from_project = Home.find()
    monkeypatch.chdir(tmp_path / "agents")

    assert from_project == Home.find() == Home.find(tmp_path / "agents")


def test_the_environment_names_another_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPUCHIN_HOME", str(tmp_path / "deep/state"))

    home = Home.find(tmp_path).open(create=True)

    assert home.path == tmp_path / "deep/state"
    assert home.path.is_dir()


def test_what_is_made_is_private_and_kept_out_of_git(tmp_path: Path) -> None:
    home = made(tmp_path)
    home.make_key()

    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert modes(home) == {"600", "700"}
    assert (home.path / ".gitignore").read_text() == "*\n"


def test_a_wide_umask_makes_nothing_wider(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = made(tmp_path)
        home.make_key()
    finally:
        os.umask(before)

    assert modes(home) == {"600", "700"}


def test_a_missing_folder_is_no_error_until_something_needs_it(tmp_path: Path) -> None:
    home = Home.find(tmp_path).open()

    assert not home.exists
    with pytest.raises(ServerUnavailable, match="capuchin up"):
        home.key()


def test_an_empty_folder_that_a_person_made_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".capuchin").mkdir(mode=0o755)

    home = Home.find(tmp_path).open(create=True)

    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700


def test_two_that_make_the_folder_at_once_agree(tmp_path: Path) -> None:
    def make(_: int) -> bytes:
        return made(tmp_path).make_key()

    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(make, range(8)))

    assert len(keys) == 1


def test_a_folder_that_came_with_downloaded_files_is_refused_by_name(tmp_path: Path) -> None:
    shipped = tmp_path / ".capuchin"
    shipped.mkdir()
    (shipped / "key").write_text("00" * 32)

    for create in (False, True):
        with pytest.raises(UnsafeState) as refusal:
            Home.find(tmp_path).open(create=create)
        assert f"rm -r {shipped}" in str(refusal.value)


def test_a_copied_folder_is_refused(tmp_path: Path) -> None:
    home = made(tmp_path / "mine")
    shutil.copytree(tmp_path / "mine", tmp_path / "theirs")

    with pytest.raises(UnsafeState, match="copied or moved here") as refusal:
        Home.find(tmp_path / "theirs").open(create=True)
    assert str(home.path) in str(refusal.value)
    assert home.open() == home


def test_an_unpacked_folder_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "mine")
    archive = tmp_path / "agents.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(tmp_path / "mine", "shop")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")

    with pytest.raises(UnsafeState, match="is not used"):
        Home.find(tmp_path / "unpacked/shop").open(create=True)


def test_a_folder_of_another_machine_is_refused(tmp_path: Path) -> None:
    home = made(tmp_path)
    mark = json.loads((home.path / MARK).read_text())
    home.write(home.path / MARK, json.dumps(mark | {"machine": "0" * 64}))

    with pytest.raises(UnsafeState, match="another machine"):
        home.open()


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', "{}", "\ud800"])
def test_a_damaged_mark_is_refused(tmp_path: Path, content: str) -> None:
    home = made(tmp_path)
    (home.path / MARK).write_bytes(content.encode("utf-8", "surrogatepass"))

    with pytest.raises(UnsafeState, match="is not used"):
        home.open(create=True)


def test_a_moved_folder_is_used_again_after_a_person_has_claimed_it(tmp_path: Path) -> None:
    key = made(tmp_path / "old").make_key()
    (tmp_path / "old").rename(tmp_path / "new")
    home = Home.find(tmp_path / "new")
    with pytest.raises(UnsafeState):
        home.open()

    home.claim()

    assert home.open().key() == key


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "mine")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/.capuchin").symlink_to(tmp_path / "mine/.capuchin")

    with pytest.raises(UnsafeState, match="is a link"):
        Home.find(tmp_path / "theirs").open(create=True)


@pytest.mark.parametrize("name", ["key", "temporal.db", "log", "store", MARK])
def test_a_link_inside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    home = made(tmp_path)
    (tmp_path / "elsewhere").touch()
    entry = home.path / name
    if entry.is_dir():
        entry.rmdir()
    entry.unlink(missing_ok=True)
    entry.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UnsafeState):
        home.open(create=True)


def test_a_link_above_the_folder_is_fine(tmp_path: Path) -> None:
    home = made(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert Home.find(tmp_path / "link").open().path == home.path


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    home = made(tmp_path)
    home.path.chmod(mode)

    with pytest.raises(UnsafeState, match="written by other users"):
        home.open()


def test_what_others_own_is_refused(tmp_path: Path) -> None:
    home = made(tmp_path)
    if os.geteuid() == 0:
        os.chown(home.data_dir, NOBODY, NOBODY)
        with pytest.raises(UnsafeState, match="data belongs to another user"):
            home.open()
        os.chown(home.path, NOBODY, NOBODY)
        with pytest.raises(UnsafeState, match="belongs to another user"):
            home.open()
    assert modes(home) == {"600", "700"}


@pytest.mark.parametrize("folder", ["/dev/null/state", "/proc/capuchin-state"])
def test_a_place_that_cannot_be_written_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("CAPUCHIN_HOME", folder)

    with pytest.raises(UnsafeState) as refusal:
        Home.find(tmp_path).open(create=True)
    assert folder in str(refusal.value)
    assert "CAPUCHIN_HOME" in str(refusal.value)


def test_nobody_is_told_to_remove_a_folder_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letters").touch()
    monkeypatch.setenv("CAPUCHIN_HOME", str(tmp_path))

    with pytest.raises(UnsafeState) as refusal:
        Home.find(tmp_path).open(create=True)
    assert "rm " not in str(refusal.value)
    assert "CAPUCHIN_HOME" in str(refusal.value)


def test_hidden_marks_in_a_path_are_shown(tmp_path: Path) -> None:
    folder = tmp_path / "a\u202eb\x1b[2J"
    folder.mkdir()
    (folder / ".capuchin").mkdir()
    (folder / ".capuchin/key").touch()

    with pytest.raises(UnsafeState) as refusal:
        Home.find(folder).open()
    assert "\x1b" not in str(refusal.value)
    assert "\u202e" not in str(refusal.value)


def test_a_written_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    home = made(tmp_path)
    home.write(home.agents_file, "one")
    home.write(home.agents_file, "two")

    assert home.read(home.agents_file) == b"two"
    assert home.read(home.worker_file) is None
    assert [p.name for p in home.path.iterdir() if "agents.json" in p.name] == ["agents.json"]


def test_a_pipe_in_place_of_a_file_does_not_hold_the_reader(tmp_path: Path) -> None:
    home = made(tmp_path)
    os.mkfifo(home.agents_file)

    with pytest.raises(UnsafeState, match="not a plain file"):
        home.read(home.agents_file)


def test_the_key_is_made_once(tmp_path: Path) -> None:
    home = made(tmp_path)
    key = home.make_key()

    assert len(key) == 32
    assert home.make_key() == home.key() == key
    assert made(tmp_path / "other").make_key() != key


def test_a_lost_key_is_not_replaced_under_its_conversations(tmp_path: Path) -> None:
    home = made(tmp_path)
    home.make_key()
    home.database.touch()
    (home.path / "key").unlink()

    with pytest.raises(UnsafeState, match="put the key back"):
        home.make_key()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_open_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    home = made(tmp_path)
    home.make_key()
    (home.path / "key").chmod(mode)

    with pytest.raises(UnsafeState):
        home.key()
    monkeypatch.setenv("CAPUCHIN_KEY_FILE", str(home.path / "key"))
    with pytest.raises(UnsafeState, match="open to other users"):
        home.key()


def test_a_named_key_is_read_through_links_and_never_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path)
    monkeypatch.setenv("CAPUCHIN_KEY_FILE", str(tmp_path / "secret"))
    with pytest.raises(UnsafeState, match="openssl rand -hex 32"):
        home.make_key()

    (tmp_path / "..data").write_text("ab" * 32)
    (tmp_path / "..data").chmod(0o400)
    (tmp_path / "secret").symlink_to(tmp_path / "..data")

    assert home.make_key() == home.key() == b"\xab" * 32
    assert not (home.path / "key").exists()


@pytest.mark.parametrize("text", ["", "ab", "zz" * 32, "ab" * 33, "\xff" * 64])
def test_a_file_without_a_key_is_refused(tmp_path: Path, text: str) -> None:
    home = made(tmp_path)
    home.write(home.path / "key", text)

    with pytest.raises(UnsafeState, match="holds no key"):
        home.key()


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("shop", "shop"), ("My Shop!", "my-shop"), ("Ünïcode", "unicode"), ("日本", "project")],
)
def test_a_project_is_named_after_its_folder(tmp_path: Path, folder: str, expected: str) -> None:
    (tmp_path / folder).mkdir()

    assert project_name(Home.find(tmp_path / folder)) == expected


def test_a_project_keeps_its_name_for_terminals_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPUCHIN_HOME", str(tmp_path / "state"))
    made(tmp_path / "shop")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    assert project_name(Home.find()) == "shop"


def test_the_environment_names_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPUCHIN_PROJECT", "billing-eu")
    assert project_name(Home.find(tmp_path)) == "billing-eu"

    for name in ("", "Billing EU", "-x", "a" * 41, "x\n"):
        monkeypatch.setenv("CAPUCHIN_PROJECT", name)
        with pytest.raises(RequestRefused, match="CAPUCHIN_PROJECT"):
            project_name(Home.find(tmp_path))
