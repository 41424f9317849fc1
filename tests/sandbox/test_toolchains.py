"""Which tool chains are shown: those of the table and of PATH, and git's configuration without what opens doors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.sandbox.jail import git_config, toolchains


@pytest.fixture
def person(tmp_path: Path) -> Path:
    for name in (".pyenv/bin", ".cargo/bin", ".ssh", "notes", ".local/bin", ".local/share/keyrings", "bin", "lib"):
        (tmp_path / "me" / name).mkdir(parents=True)
    return tmp_path / "me"


def test_what_is_there_of_the_table_is_shown_and_nothing_else(person: Path) -> None:
    shown = toolchains(str(person), {})

    assert set(shown) == {f"{person}/{name}" for name in (".pyenv", ".cargo/bin", ".local/bin", "bin")}


def test_path_leads_to_what_is_installed_and_never_to_the_home_itself(person: Path, tmp_path: Path) -> None:
    for name in ("venv/bin", "venv/lib", "plain/bin", "me/.local/lib", "odd"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    entries = [
        f"{tmp_path}/venv/bin",
        f"{tmp_path}/plain/bin",
        f"{person}/bin",
        f"{person}/.local/bin",
        "relative",
        "/no",
    ]

    shown = toolchains(str(person), {"PATH": ":".join(entries), "NVM_DIR": f"{tmp_path}/odd", "GOROOT": "x"})

    assert {f"{tmp_path}/venv", f"{tmp_path}/plain/bin", f"{tmp_path}/odd"} <= set(shown)
    assert not {str(person), f"{tmp_path}/plain", f"{person}/.local", "relative", "/no", "x"} & set(shown)


@pytest.mark.parametrize("entry", ["{0}/bin/..", "{0}/.", "/{0}", "{0}/../me", "{0}/self", "/tmp", "/etc/..", "//"])
def test_no_other_name_of_the_home_shows_it(person: Path, entry: str) -> None:
    (person / "self").symlink_to(person)
    named = entry.format(person)

    for variables in ({"PATH": f"/usr/bin:{named}"}, {"VIRTUAL_ENV": named}):
        shown = map(os.path.realpath, toolchains(str(person), variables))
        assert not {str(person), "/tmp", "/"} & set(shown)


CONFIG = """\
[user]
\tname = Ann
\temail = ann@example.org
[credential]
\thelper = store
[credential "https://example.org"]
\tusername = ann
[http "https://example.org"]
\textraheader = Authorization: Basic c2VjcmV0
[url "https://ann:tok@example.org/"]
\tinsteadOf = https://example.org/
[core] autocrlf = input
\tsshCommand = ssh -i ~/.ssh/key
\thooksPath = ~/hooks
[alias]
\tup = !curl -H "X: tok"
[commit]
\tgpgsign = true
\ttemplate = \\
~/t
[remote "x"]
\turl = https://a:b@example.org
[branch "x"]
\tremote = https://ann:tok@example.org/x
"""


def test_git_keeps_who_somebody_is_and_no_credential(person: Path) -> None:
    (person / ".gitconfig").write_text(CONFIG)
    (person / ".config/git").mkdir(parents=True)
    (person / ".config/git/config").write_text("[init]\ndefaultBranch = main\n")

    kept = git_config(str(person))

    for word in ("name = Ann", "email = ann@example.org", "autocrlf = input", "template = ", "defaultBranch = main"):
        assert word in kept
    for word in ("store", "Basic", "tok", "key", "hooks", "gpgsign", "a:b"):
        assert word not in kept


def test_without_a_configuration_there_is_none(tmp_path: Path) -> None:
    assert git_config(str(tmp_path)).strip() == ""
