"""Tool chains below the person's home: which folders walls show, where their caches are, and git's configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from hermes_agent.sandbox.walls import UNBOUNDED, words

# Programs and what belongs to them; shown read-only where they are there. They hold no credentials, or `closed` of
# the walls names those.
TOOLCHAINS = words(
    """
    .local/bin .local/lib .local/share/uv .local/share/pipx .local/pipx .pyenv .virtualenvs
    .local/share/virtualenvs miniconda3 anaconda3 miniforge3 mambaforge micromamba .conda/envs .nvm .fnm
    .local/share/fnm .volta .npm-global .local/share/pnpm .bun/bin .deno/bin .rustup .cargo/bin .cargo/env
    .cargo/config.toml go/bin .sdkman .jenv .rbenv .rvm .gem/ruby .asdf .local/share/mise .local/share/rtx
    .ghcup .opam .juliaup .dotnet .swiftly .nix-profile bin .config/git/ignore .config/git/attributes .gitignore
    .tool-versions
    """
)
# Variables that name a cache, and its folder below the wall's own, one for each workspace: what a command leaves in
# a cache is read neither outside the wall nor by commands of another workspace.
CACHES = {
    "XDG_CACHE_HOME": "{}",
    "PIP_CACHE_DIR": "{}/pip",
    "UV_CACHE_DIR": "{}/uv",
    "npm_config_cache": "{}/npm",
    "YARN_CACHE_FOLDER": "{}/yarn",
    "BUN_INSTALL_CACHE_DIR": "{}/bun",
    "CARGO_HOME": "{}/cargo",
    "GOCACHE": "{}/go-build",
    "GOMODCACHE": "{}/go-mod",
    "CCACHE_DIR": "{}/ccache",
    "GRADLE_USER_HOME": "{}/gradle",
    "MAVEN_OPTS": "-Dmaven.repo.local={}/maven",
}
ROOTS = words(
    """
    VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT NVM_DIR FNM_DIR VOLTA_HOME RUSTUP_HOME GOROOT JAVA_HOME SDKMAN_DIR
    ASDF_DATA_DIR MISE_DATA_DIR RBENV_ROOT DOTNET_ROOT
    """
)
"""Variables that name the folder of a tool chain."""
EVERYBODYS = (*UNBOUNDED, "/tmp", "/var/tmp")
PROGRAMS = ("bin", "sbin", "shims", "condabin")
INSTALLED = ("lib", "libexec", "versions", "pyvenv.cfg")
"""One of these beside a folder of programs belongs to them."""

GIT_CONFIGS = (".gitconfig", ".config/git/config")
GIT_SECTIONS = words(
    """
    user author committer core init pull push fetch merge mergetool diff difftool rebase branch color commit tag
    log status column advice rerere apply format i18n safe submodule filter grep help pack gc index feature
    sequence stash
    """
)
# What needs a key that is closed, or runs a program of the person's.
GIT_DROPPED = words(
    """
    gpgsign signingkey sshcommand askpass hookspath gitproxy fsmonitor editor pager
    """
)
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)[^\]]*\]")
_KEY = re.compile(r"\s*([\w-]+)")
_PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]*@")


def toolchains(person: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The folders of tool chains that are there: those of the table, and those to which `PATH` and the variables of
    tool chains lead. Blocks."""
    named = [f"{person}/{name}" for name in TOOLCHAINS]
    named += [variables[name] for name in ROOTS if variables.get(name, "").startswith("/")]
    entries = [entry for entry in variables.get("PATH", "").split(":") if entry.startswith("/")]
    found = [*named, *(folder for entry in entries for folder in _led(entry, person))]
    return tuple(dict.fromkeys(folder for folder in found if os.path.exists(folder) and is_apart(folder, person)))  # noqa: PTH110 - many, as text


def is_apart(folder: str, person: str) -> bool:
    """Whether a folder holds neither the home of a person nor what is everybody's, by whatever name it goes."""
    real, home = os.path.realpath(folder), os.path.realpath(person)
    is_another_home = real.rpartition("/")[0] == "/home"
    return not (is_another_home or real in EVERYBODYS or f"{home}/".startswith(f"{real.rstrip('/')}/"))


def _led(entry: str, person: str) -> Iterator[str]:
    """What an entry of PATH leads to: its folder, and where that is part of something installed, all of it. An entry
    that holds the person's home leads nowhere."""
    if f"{person}/".startswith(f"{entry.rstrip('/')}/"):
        return
    yield entry
    parent, _, name = entry.rstrip("/").rpartition("/")
    is_own = parent in (person, f"{person}/.local", f"{person}/.cargo") or parent.count("/") < 2
    if name in PROGRAMS and not is_own and any(Path(parent, each).exists() for each in INSTALLED):
        yield parent


def git_config(person: str) -> str:
    """The person's configuration of git without credentials, and without what runs other programs. Blocks."""
    lines: list[str] = []
    for name in GIT_CONFIGS:
        with suppress(OSError, UnicodeError):
            lines += _harmless(Path(person, name).read_text())
    return "\n".join([*lines, ""])


def _harmless(text: str) -> Iterator[str]:
    is_kept = False
    for line in text.replace("\\\n", " ").splitlines():
        if begins := _SECTION.match(line):
            is_kept = begins[1].lower() in GIT_SECTIONS
            if is_kept:
                yield line[: begins.end()]
            line = line[begins.end() :]
        key = _KEY.match(line)
        if is_kept and key and key[1].lower() not in GIT_DROPPED and not _PASSWORD.search(line):
            yield line
