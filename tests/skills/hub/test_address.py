"""What names a repository, and what does not."""

from pathlib import Path

import pytest

from hermes_agent.skills.hub.address import address_of
from hermes_agent.skills.hub.errors import HubError


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
