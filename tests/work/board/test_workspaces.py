"""Workspaces: what is made, and that removing one never costs anybody a file. Git itself is asked."""

import os
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.store.work.cards import Card, Status, Workspace
from hermes_agent.work.board.workspaces import Kept, Workspaces

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
NAMES = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *NAMES, "-C", str(folder), *words], check=True, capture_output=True, text=True, env=ENV
    ).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "home/workspace/board", ENV)


def card(kind: Workspace, **more) -> Card:
    return Card(id="t_0000aa", board="main", title="x", status=Status.ARCHIVED, workspace=kind, **more)


async def made(workspaces: Workspaces, found: Card) -> Card:
    folder, branch = await workspaces.prepare(found)
    return replace(found, folder=folder, branch=branch)


def mode(path: str) -> int:
    return Path(path).stat().st_mode & 0o777


def there(path: str | Path) -> bool:
    return os.path.lexists(path)


def replaced(folder: Path, target: Path) -> None:
    """The folder moved, and a link to it in its place."""
    folder.rename(target)
    folder.symlink_to(target)


def vanish(path: Path) -> None:
    path.unlink()


def relink(link: Path, target: Path) -> None:
    link.unlink()
    link.symlink_to(target)


def tree(folder: Path) -> dict[str, bytes]:
    """All files of a folder, links not followed."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_scratch_folder_is_made_once_and_removed_whole(workspaces: Workspaces):
    found = await made(workspaces, card(Workspace.SCRATCH))
    (Path(found.folder) / "x").write_text("x")
    assert (await made(workspaces, found)).folder == found.folder
    assert mode(found.folder) == 0o700
    assert there(Path(found.folder) / "x")

    assert "removed" in await workspaces.remove(found)

    assert not there(found.folder)
    assert "no workspace" in await workspaces.remove(found)


async def test_links_out_of_a_scratch_folder_are_removed_and_not_followed(workspaces: Workspaces, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("p")
    found = await made(workspaces, card(Workspace.SCRATCH))
    (Path(found.folder) / "link").symlink_to(outside)
    (Path(found.folder) / "up").symlink_to("../../..")
    os.link(outside / "precious", Path(found.folder) / "hard")

    await workspaces.remove(found)

    assert tree(outside) == {"precious": b"p"}


async def test_what_stands_in_the_place_of_a_scratch_folder_stays(workspaces: Workspaces, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("p")
    found = await made(workspaces, card(Workspace.SCRATCH))
    replaced(Path(found.folder), tmp_path / "emptied")
    relink(Path(found.folder), outside)
    with pytest.raises(Kept, match="a link"):
        await workspaces.remove(found)
    with pytest.raises(HermesError, match="move it away"):
        await workspaces.prepare(found)
    for folder in (str(outside), str(tmp_path), "/", ""):
        with pytest.raises(Kept, match="is not what the card names"):
            await workspaces.remove(replace(found, folder=folder))
    for name in ("..", "t_0000aa/..", "", "t_zzzzzz", "t_0000aa\n"):
        with pytest.raises(Kept, match="no id"):
            await workspaces.remove(replace(found, id=name))
    assert tree(outside) == {"precious": b"p"}


@pytest.mark.parametrize("kind", ["clone", "bare", "worktree"])
async def test_a_scratch_folder_with_a_repository_in_it_stays(workspaces: Workspaces, repo: Path, kind: str):
    found = await made(workspaces, card(Workspace.SCRATCH))
    inner = Path(found.folder) / "deep/er"
    words = {"clone": ("clone", "-q"), "bare": ("clone", "-q", "--bare"), "worktree": ()}[kind]
    if words:
        git(repo, *words, str(repo), str(inner))
    else:
        git(repo, "worktree", "add", "-q", str(inner))
    before = tree(Path(found.folder))
    with pytest.raises(Kept, match="a git repository is in it"):
        await workspaces.remove(found)
    assert tree(Path(found.folder)) == before


async def test_a_worktree_has_a_branch_of_its_own_and_its_commits_outlive_it(workspaces: Workspaces, repo: Path):
    found = await made(workspaces, card(Workspace.WORKTREE, source=str(repo)))
    assert found.branch == "hermes/t_0000aa"
    assert (await made(workspaces, found)).folder == found.folder
    (Path(found.folder) / "b.txt").write_text("b")
    git(Path(found.folder), "add", ".")
    git(Path(found.folder), "commit", "-qm", "two")

    assert "its branch stays" in await workspaces.remove(found)

    assert not there(found.folder)
    assert git(repo, "show", f"{found.branch}:b.txt") == "b"
    assert git(repo, "worktree", "list").count("\n") == 1
    again = await made(workspaces, found)
    assert (Path(again.folder) / "b.txt").read_text() == "b"


def untracked(folder: Path) -> None:
    (folder / "new").write_text("n")


def ignored(folder: Path) -> None:
    (folder / "x.log").write_text("n")


def changed(folder: Path) -> None:
    (folder / "a.txt").write_text("changed")


def staged(folder: Path) -> None:
    changed(folder)
    git(folder, "add", ".")


def detached(folder: Path) -> None:
    git(folder, "checkout", "-q", "--detach")
    git(folder, "commit", "-q", "--allow-empty", "-m", "nowhere")


def unfinished(folder: Path) -> None:
    admin = Path((folder / ".git").read_text().removeprefix("gitdir: ").strip())
    (admin / "MERGE_HEAD").write_text(git(folder, "rev-parse", "HEAD"))


def nested(folder: Path) -> None:
    git(folder, "worktree", "add", "-q", "-b", "inner", "inner")


def elsewhere(folder: Path) -> None:
    (folder / ".git").write_text(f"gitdir: {folder}/evil")


def own_repository(folder: Path) -> None:
    (folder / ".git").unlink()
    git(folder, "init", "-q")


def linked(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.symlink_to("moved")


HARM = (untracked, ignored, changed, staged, detached, unfinished, nested, elsewhere, own_repository, linked)


@pytest.mark.parametrize("harm", HARM, ids=lambda each: each.__name__)
async def test_a_worktree_with_anything_uncommitted_or_strange_stays(workspaces: Workspaces, repo: Path, harm):
    found = await made(workspaces, card(Workspace.WORKTREE, source=str(repo)))
    harm(Path(found.folder))
    before = tree(Path(found.folder))
    with pytest.raises(Kept):
        await workspaces.remove(found)
    assert tree(Path(found.folder)) == before
    git(repo, "fsck", "--strict")


async def test_a_worktree_runs_no_program_that_somebody_left_in_it(workspaces: Workspaces, repo: Path, tmp_path: Path):
    found = await made(workspaces, card(Workspace.WORKTREE, source=str(repo)))
    evil = Path(found.folder) / "evil"
    git(tmp_path, "init", "-q", "--bare", str(evil))
    git(evil, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    git(evil, "config", "core.worktree", found.folder)
    elsewhere(Path(found.folder))
    with pytest.raises(Kept):
        await workspaces.remove(found)
    assert not there(tmp_path / "ran")


async def test_a_repository_that_moved_takes_its_worktree_along_unharmed(workspaces: Workspaces, repo: Path):
    found = await made(workspaces, card(Workspace.WORKTREE, source=str(repo)))
    replaced(repo, repo.with_name("moved"))
    vanish(repo)
    with pytest.raises(Kept):
        await workspaces.remove(found)
    with pytest.raises(HermesError):
        await workspaces.prepare(replace(found, id="t_0000ab"))
    assert there(Path(found.folder) / "a.txt")


async def test_a_folder_of_a_person_is_used_as_it_is_and_never_removed(workspaces: Workspaces, tmp_path: Path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "page").write_text("p")
    found = await made(workspaces, card(Workspace.DIR, folder=str(folder)))
    assert found.folder == str(folder)
    assert "stays" in await workspaces.remove(found)
    assert tree(folder) == {"page": b"p"}
    replaced(folder, tmp_path / "other")
    with pytest.raises(HermesError, match="a link stands in its place"):
        await workspaces.prepare(found)


@pytest.mark.timeout(600)
async def test_no_removal_costs_a_byte_outside_whatever_is_in_a_workspace(tmp_path: Path, repo: Path, full: bool):
    """Random contents: links, nested repositories, renamed and replaced folders, half-finished work."""
    chance = random.Random(11)
    outside = tmp_path / "outside"
    for number in range(500 if full else 12):
        outside.mkdir()
        if number % 20 == 19:  # The check of a repository takes longer with each worktree.
            repo = repository(tmp_path / f"repo{number}")
        (outside / "precious").write_bytes(chance.randbytes(50))
        workspaces = Workspaces(tmp_path / f"home{number}/board", ENV)
        is_tree = chance.random() < 0.6
        kind = Workspace.WORKTREE if is_tree else Workspace.SCRATCH
        found = await made(workspaces, replace(card(kind, source=str(repo)), id=f"t_{number:06x}"))
        folder = Path(found.folder)
        for _ in range(chance.randrange(4)):
            _disturb(folder, outside, repo, chance)
        before, commits = tree(outside), git(repo, "rev-list", "--all")

        removed = True
        try:
            await workspaces.remove(found)
        except Kept:
            removed = False

        assert tree(outside) == before
        assert git(repo, "rev-list", "--all") == commits
        assert git(repo, "status", "--porcelain") == ""
        git(repo, "fsck", "--strict")
        assert removed == (not there(folder)) or is_tree
        shutil.rmtree(outside)


def _disturb(folder: Path, outside: Path, repo: Path, chance: random.Random) -> None:
    name = f"n{chance.randrange(10**6)}"
    match chance.randrange(7):
        case 0:
            (folder / name).symlink_to(chance.choice([outside, outside / "precious", Path("/"), repo]))
        case 1:
            (folder / name).mkdir()
            (folder / name / "file").write_text("f")
        case 2:
            git(repo, "worktree", "add", "-q", "-b", name, str(folder / name))
        case 3:
            os.link(outside / "precious", folder / name)
        case 4:
            (folder / name).mkdir()
            git(folder / name, "init", "-q")
        case 5 if not folder.is_symlink():
            folder.rename(outside / name)
            folder.symlink_to(outside / name)
        case _:
            (folder / "x.log").write_text("log")
