"""The git command is run so that nothing of the repository's, of the other side's, or of this machine's is run."""

import asyncio
import os
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.host.tasks import in_own_thread, spawn
from hermes_agent.skills.hub.git import Address, HubError, Limits, Repository, Unreachable, address_of
from tests.skills.hub.origin import VARIABLES, Origin, origin


@pytest.fixture
def there(tmp_path: Path) -> Origin:
    made = origin(tmp_path / "origin")
    made.commit({"a.txt": "one\n", "b/c.bin": b"\0\n\1", "b/ü.txt": "x"})
    return made


@pytest.fixture
def here(tmp_path: Path, there: Origin) -> Repository:
    return Repository(address=address_of(str(there.root)), folder=tmp_path / "kept.git", variables=VARIABLES)


async def test_contents_come_from_the_object_store_as_they_are(here: Repository, there: Origin):
    at = await here.fetch()
    entries = await here.tree(at.commit)

    assert (at.commit, at.ref) == (there.git("rev-parse", "HEAD"), "refs/heads/main")
    assert [each.path for each in entries] == ["a.txt", "b/c.bin", "b/ü.txt"]
    assert await here.contents([each.oid for each in entries]) == [b"one\n", b"\0\n\1", b"x"]
    assert [each.path for each in await here.tree(at.commit, "b")] == ["b/c.bin", "b/ü.txt"]


async def test_only_the_newest_state_is_fetched(here: Repository, there: Origin):
    for number in range(5):
        there.commit({"a.txt": str(number)})
    at = await here.fetch()
    assert (await here.run("rev-list", "--count", at.commit)).strip() == b"1"


async def test_hooks_and_settings_of_anybody_are_not_used(here: Repository, there: Origin, tmp_path: Path):
    await here.fetch()
    there.commit({"a.txt": "two\n"})
    mark = tmp_path / "ran"
    for hooks in (here.folder / "hooks", there.root / ".git/hooks"):
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "reference-transaction", "pre-push", "post-merge"):
            (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
            (hooks / name).chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text('[core]\n\tsshCommand = /bin/false\n[url "/nonexistent"]\n\tinsteadOf = /\n')
    careful = replace(here, variables={**VARIABLES, "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": str(settings)})
    await careful.fetch()

    assert not mark.exists()


async def test_an_address_leads_to_no_other_protocol(here: Repository, tmp_path: Path):
    """What a server could answer with a redirect: another protocol than the one that was typed."""
    elsewhere = replace(here, address=Address(url=here.address.url, protocol="https", name="x"))
    with pytest.raises(Unreachable, match="not allowed"):
        await elsewhere.fetch()
    outside = replace(here, address=Address(url=f"ext::touch {tmp_path}/ran", protocol="file", name="x"))
    with pytest.raises(Unreachable):
        await outside.fetch()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ref", ["nothing", "-x", "a..b", "a b", "refs/heads/none", "HEAD~1"])
async def test_a_name_that_is_not_there_is_told(here: Repository, ref: str):
    with pytest.raises(HubError, match=r"not a branch|has no branch"):
        await here.fetch(ref)


async def test_a_commit_that_is_not_there_is_told(here: Repository):
    with pytest.raises(Unreachable, match="cannot be fetched"):
        await here.fetch("1" * 40)
    with pytest.raises(HubError, match="does not hold"):
        await here.tree("1" * 40)
    with pytest.raises(HubError, match="is not in the repository"):
        await here.contents(["1" * 40])
    with pytest.raises(HubError, match="git rev-parse failed"):
        await here.run("rev-parse", "--verify", "nothing")


async def test_an_empty_repository_is_told(tmp_path: Path):
    made = origin(tmp_path / "empty")
    here = Repository(address=address_of(str(made.root)), folder=tmp_path / "kept.git", variables=VARIABLES)
    with pytest.raises(HubError, match="is empty"):
        await here.fetch()


async def test_a_folder_that_is_no_repository_is_told(tmp_path: Path):
    here = Repository(address=address_of(str(tmp_path)), folder=tmp_path / "kept.git", variables=VARIABLES)
    with pytest.raises(Unreachable, match="cannot be reached"):
        await here.fetch()


async def test_a_server_that_is_gone_is_told(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening: whoever comes is turned away
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a/b"
        here = Repository(address=address_of(url), folder=tmp_path / "kept.git", variables=VARIABLES)
        with pytest.raises(Unreachable, match="cannot be reached"):
            await here.fetch()


async def test_without_git_there_is_a_sentence(here: Repository):
    with pytest.raises(HubError, match="git, which is not installed"):
        await replace(here, variables={"PATH": "/nonexistent"}).fetch()


async def test_a_git_that_cannot_be_started_is_told(here: Repository, tmp_path: Path):
    (tmp_path / "git").write_text("no program")
    (tmp_path / "git").chmod(0o755)
    with pytest.raises(HubError, match="cannot be started"):
        await replace(here, variables={"PATH": str(tmp_path)}).fetch()


def slow_git(folder: Path, what: str) -> dict[str, str]:
    """A git that answers, but for one command."""
    folder.mkdir()
    words = f'#!/bin/sh\nfor word; do [ "$word" = fetch ] && {what}; done\nPATH={VARIABLES["PATH"]} exec git "$@"\n'
    (folder / "git").write_text(words)
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:{VARIABLES['PATH']}"}


async def test_a_repository_without_end_is_given_up(here: Repository, tmp_path: Path):
    arrived: list[int] = []
    filling = f"head -c 3000000 /dev/zero > {here.folder}/objects/pack && sleep 20"
    limits = Limits(fetched=1_000_000)
    large = replace(here, variables=slow_git(tmp_path / "bin", filling), tell=arrived.append, limits=limits)
    with pytest.raises(HubError, match="more than 0 MB at one commit"):
        await large.fetch()
    assert arrived[-1] == 3_000_000


async def test_a_repository_that_does_not_come_is_given_up(here: Repository, tmp_path: Path):
    slow = replace(here, variables=slow_git(tmp_path / "bin", "sleep 20"), limits=Limits(seconds=1.0))
    with pytest.raises(Unreachable, match="longer than 1 s"):
        await slow.fetch()


async def test_whoever_stops_waiting_ends_git(here: Repository, tmp_path: Path):
    """The end of a pipe is seen when everybody who could write into it is gone."""
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    slow = replace(here, variables=slow_git(tmp_path / "bin", f"exec sleep 60 > {alive}"))
    work = spawn(slow.fetch(), name="fetch")
    with await in_own_thread(partial(alive.open, "rb")) as pipe:
        work.cancel()
        await asyncio.wait({work})
        assert await asyncio.to_thread(pipe.read) == b""


async def test_a_name_that_is_no_text_is_told(here: Repository, there: Origin):
    (there.root / "b").joinpath(b"\xff.txt".decode("utf-8", "surrogateescape")).write_text("x")
    there.commit({})
    at = await here.fetch()
    with pytest.raises(HubError, match="a name that is not text"):
        await here.tree(at.commit)


async def test_more_files_than_are_read_is_told(here: Repository):
    at = await here.fetch()
    with pytest.raises(HubError, match="more files than are read"):
        await replace(here, limits=Limits(listed=10)).tree(at.commit)


@pytest.mark.parametrize(
    ("text", "url", "protocol", "name"),
    [
        ("anthropics/skills", "https://github.com/anthropics/skills", "https", "anthropics/skills"),
        ("owner/repo.git", "https://github.com/owner/repo", "https", "owner/repo"),
        ("https://git.example/a/b/c.git", "https://git.example/a/b/c.git", "https", "b/c"),
        ("ssh://git@host.example:22/a/b", "ssh://git@host.example:22/a/b", "ssh", "a/b"),
        ("git@host.example:a/b.git", "git@host.example:a/b.git", "ssh", "a/b"),
        ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a", "http", "a"),
    ],
)
def test_the_forms_that_there_are(text: str, url: str, protocol: str, name: str):
    found = address_of(text)
    assert (found.url, found.protocol, found.name) == (url, protocol, name)


def test_a_folder_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "skills.git").mkdir()
    monkeypatch.chdir(tmp_path)
    for text in (str(tmp_path / "skills.git"), "./skills.git", f"file://{tmp_path}/skills.git"):
        found = address_of(text)
        assert (found.url, found.protocol, found.name) == (str(tmp_path / "skills.git"), "file", "skills")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a repository"),
        ("--upload-pack=touch /tmp/x", "is not a repository"),
        ("ext::sh -c touch% /tmp/x", "is not a repository"),
        ("word", "is not a repository"),
        ("a\nb/c", "is not a repository"),
        ("x" * 600, "is not a repository"),
        ("http://example.org/a/b", "`http` is not supported"),
        ("ftp://example.org/a", "`ftp` is not supported"),
        ("https://", "names no repository"),
        ("https://host", "names no repository"),
        ("https://[::1", "is not an address"),
        ("https://user:secret@host/a/b", "which would be written down"),
        ("https://token@host/a/b", "which would be written down"),
        ("/nonexistent/folder", "There is no folder"),
        ("~nobody-of-this-name/x", "no such home"),
    ],
)
def test_what_is_none_gets_a_sentence(text: str, said: str):
    with pytest.raises(HubError, match=said):
        address_of(text)
