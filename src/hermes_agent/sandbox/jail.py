"""Jails for commands on this machine: kinds of wall that show a command no more than a list; what toolchains need."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os.path import realpath
from pathlib import Path
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.section import short_hash
from hermes_agent.host.late import late
from hermes_agent.host.process import Child
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.seccomp import Handler
from hermes_agent.sandbox.walls import UNBOUNDED, Walls, real, words

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


# Each kind of jail and what builds it; the first that works on this machine is taken where none is named.
JAILS: dict[str, str] = {
    "bubblewrap": "hermes_agent.sandbox.bubblewrap:build",
    "landlock": "hermes_agent.sandbox.landlock:build",
    "seatbelt": "hermes_agent.sandbox.seatbelt:build",
}
# They name folders of the person's that are not shown.
DROPPED = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMP", "TEMP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one command has beyond the walls: `folder` (its record, where only `files` may be written and nothing
    replaced), its kept shell, the session's workspace and other `folders`, and files lent to it for reading. `session`
    is the folder of what the commands of one session share: `tmp` (their /tmp) and `home`. `launch` calls what starts
    the program, in a thread of its own where handlers answer for system calls; `connections` are those for the network.
    None: nobody watches, and the jail closes it. `passed` are descriptors that it inherits."""

    folder: Path
    files: tuple[str, ...]
    kept: Path | None
    workspace: str
    session: Path
    launch: Callable[[tuple[Handler, ...], Callable[[], Child]], Child]
    folders: tuple[str, ...] = ()
    lent: tuple[str, ...] = ()
    connections: tuple[Handler, ...] = ()
    passed: tuple[int, ...] = ()

    @property
    def works_in(self) -> tuple[str, ...]:
        """The workspace and the other folders."""
        return self.workspace, *self.folders

    def borrows(self, walls: Walls) -> list[Path]:
        """The files that it is lent, of those allowed by the walls."""
        return [path for path in map(Path, self.lent) if walls.lends and str(path.parent) == walls.lends]

    def prepare(self, walls: Walls, *, links_all: bool = False) -> Path:
        """Create the session's folders, and the workspace's cache. What is shown of the person's home has a link in
        the session's: where it is a link itself, or with `links_all`. Blocks; returns the session's home."""
        home = self.session / "home"
        (self.session / "tmp").mkdir(parents=True, exist_ok=True, mode=0o700)
        if walls.caches:
            Path(self.caches(walls)).mkdir(parents=True, exist_ok=True, mode=0o700)
        if not home.exists():
            home.mkdir(mode=0o700, exist_ok=True)
            self._fill(home, walls, links_all=links_all)
        return home

    def _fill(self, home: Path, walls: Walls, *, links_all: bool) -> None:
        if walls.person:
            (home / GIT_CONFIGS[0]).write_text(git_config(walls.person))
        own, named = f"{walls.person}/", (*walls.readable, *walls.writable, *self.works_in)
        for name in (name for name in named if walls.person and name.startswith(own)):
            link, to = home / name.removeprefix(own), realpath(name)
            if links_all or to != name:
                with suppress(OSError):
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(to)

    def caches(self, walls: Walls) -> str:
        """The folder of this workspace's caches."""
        return f"{walls.caches}/{short_hash(real(self.workspace))}"

    def variables(self, walls: Walls, env: Mapping[str, str], *, home: str, temporary: str) -> dict[str, str]:
        """The environment of its program. One of a kept shell has its own, and is left alone."""
        if "PATH" not in env:
            return dict(env)
        caches = {name: value.format(self.caches(walls)) for name, value in CACHES.items()} if walls.caches else {}
        kept = {name: value for name, value in env.items() if name not in DROPPED}
        return {**kept, **caches, "HOME": home, "TMPDIR": temporary}


class Jail(Protocol):
    """Starts programs with restricted access.

    - `launch` starts the program inside the walls, detached, in its own session; both outputs go to `out`; blocks
      for some milliseconds; raises `OSError`;
    - neither the program nor its children can lift the walls;
    - `layers` is the number of the jail's processes between the one that `launch` returns and the program;
    - `walls` are what it shows;
    - `limits` is shell code for the beginning of a command: what each of its processes may have;
    - `unheld` are the most processes and megabytes of one command that nothing else holds: whoever starts it has to
      look (0: held, or without limit);
    - `close` gives back what the machine lent; blocks; commands continue, and no more are started.
    """

    name: str
    layers: int
    walls: Walls
    limits: str
    unheld: tuple[int, int]

    def launch(
        self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int
    ) -> Child: ...

    def close(self) -> None: ...


class CannotJail(PlaceFailed):
    """This machine lacks what the kind of jail needs; the sentence says what."""


def check_workspace(folder: str, walls: Walls) -> None:
    """Raise `PlaceFailed` where a workspace would be the whole machine, or the home of Hermes."""
    root = real(folder)
    if root in UNBOUNDED:
        raise PlaceFailed(
            f"Commands behind a wall may write to their folder, and {folder} holds the system: work elsewhere."
        )
    if not walls.opens(root):
        raise PlaceFailed(
            f"{folder} is closed to commands (the home of Hermes, or a store of credentials): work elsewhere."
        )


def jail_of(kind: str, walls: Walls) -> Jail:
    """The jail of this kind (`any`, `auto`: the strongest that works here). Blocks. Raises `CannotJail`, and
    `PlaceFailed` where the walls would be none."""
    for path in walls.writable:
        if realpath(path) in UNBOUNDED:
            raise PlaceFailed(f"`terminal.writable` names {path}, which holds the system: name folders in it.")
    reasons = []
    for name in JAILS if kind in ("any", "auto") else {kind} & set(JAILS):
        try:
            built: Jail = late(JAILS[name])(walls)
        except CannotJail as reason:
            reasons.append(f"{name}: {reason}")
            continue
        return built
    raise CannotJail(f"Commands cannot be jailed here (`terminal.jail`). {' '.join(reasons)}")


def jail_or_none(kind: str, walls: Walls) -> Jail | None:
    """The same; None for `none`, and for `auto` where no jail works here: whoever asks then asks a person more."""
    if kind == "none":
        return None
    try:
        return jail_of(kind, walls)
    except CannotJail:
        if kind == "auto":
            return None
        raise


def limits(walls: Walls, held: Collection[str]) -> str:
    """Shell code that limits the shell and its children to what is not `held`. The letter of the number of processes
    differs between bash and dash or busybox; a shell that knows neither runs nothing."""
    processes = f"ulimit -u {walls.processes} 2>/dev/null || ulimit -p {walls.processes} || exit 125\n"
    memory = f"ulimit -d {walls.memory_mb << 10} || exit 125\n"
    return ("" if "pids" in held else processes) + (memory if walls.memory_mb and "memory" not in held else "")


def unheld(walls: Walls, held: Collection[str]) -> tuple[int, int]:
    """The limits of a whole command that somebody has to look after."""
    return 0 if "pids" in held else walls.processes, 0 if "memory" in held else walls.memory_mb


SECRET = re.compile(
    r"(^|_)(API_?KEYS?|KEY|TOKENS?|SECRETS?|PASS(WORD|WD|PHRASE)?|CREDENTIALS?|COOKIE|DSN)(_|$)|^HERMES_(?!KANBAN_)",
    re.IGNORECASE,
)
# Pagers and prompts would wait for a person who is not there.
QUIET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def scrubbed(variables: Mapping[str, str], passthrough: Iterable[str] = ()) -> dict[str, str]:
    """The variables without those whose names look like secrets, except those in `passthrough`."""
    allowed = set(passthrough)
    kept = {name: value for name, value in variables.items() if name in allowed or not SECRET.search(name)}
    return {**kept, **QUIET}
