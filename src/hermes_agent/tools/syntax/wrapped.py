"""Commands inside other commands: `sudo`, `env`, `xargs`, `find -exec`, `ssh host`, and shell scripts as arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.tools.syntax.simple import COMPUTED, NAME, Simple, lists_names

SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "mksh", "fish", "ash", "rbash", "csh", "tcsh", "pwsh"))
_OTHER_LANGUAGE = r"#!.*\b(python|perl|ruby|node|php|lua)"
ASSIGNMENT = r"[A-Za-z_]\w*\+?="


@dataclass(frozen=True, slots=True)
class Prefix:
    """A program that runs the command after it: its options with values, and how many operands precede the command."""

    valued: tuple[str, ...] = ()
    operands: int = 0


PREFIXES = {
    "sudo": Prefix(("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-r", "-t", "--user", "--group")),
    "doas": Prefix(("-u", "-C")),
    "env": Prefix(("-u", "-C", "--unset", "--chdir")),
    "nohup": Prefix(),
    "nice": Prefix(("-n", "--adjustment")),
    "ionice": Prefix(("-c", "-n", "-p")),
    "chrt": Prefix(("-p",), 1),
    "taskset": Prefix(("-p",), 1),
    "time": Prefix(("-f", "-o")),
    "timeout": Prefix(("-k", "-s", "--signal", "--kill-after"), 1),
    "setsid": Prefix(),
    "stdbuf": Prefix(("-i", "-o", "-e")),
    "unbuffer": Prefix(),
    "rlwrap": Prefix(("-f", "-H")),
    "command": Prefix(),
    "builtin": Prefix(),
    "coproc": Prefix(),
    "exec": Prefix(("-a",)),
    "xargs": Prefix(("-I", "-i", "-n", "-P", "-L", "-d", "-a", "-s", "-E", "--max-args", "--max-procs", "--replace")),
    "parallel": Prefix(("-j", "--jobs", "-a")),
    "strace": Prefix(("-e", "-o", "-p", "-s")),
    "ltrace": Prefix(("-e", "-o", "-p", "-s")),
    "watch": Prefix(("-n", "--interval", "-d")),
    "flock": Prefix(("-w", "-E", "--timeout"), 1),
    "chroot": Prefix((), 1),
    "unshare": Prefix(("-S", "-G", "-R", "-w")),
    "nsenter": Prefix(("-t", "-S", "-G", "-w")),
    "setarch": Prefix((), 1),
    "fakeroot": Prefix(),
    "busybox": Prefix(),
    "toybox": Prefix(),
    "systemd-run": Prefix(("-u", "-p", "--unit", "--property")),
    "dbus-run-session": Prefix(("--config-file",)),
    "caffeinate": Prefix(("-t", "-w")),
    "entr": Prefix(),
    "start-stop-daemon": Prefix(("-p", "-x", "-n", "-u")),
    "capsh": Prefix(),
    "valgrind": Prefix(),
    "xvfb-run": Prefix(("-n", "-s", "-e", "-f", "-w", "-p")),
    "screen": Prefix(("-S", "-c", "-t", "-T", "-h", "-p", "-x", "-r")),
    "direnv": Prefix((), 2),
}
_IN_CONTAINER = Prefix(("-u", "-e", "-w", "--user", "--env", "--workdir", "--env-file"), 1)
_ASKING = {"command": ("-v", "-V"), "sudo": ("-l", "-v", "-k", "-K", "--list", "--version"), "env": ()}
# Programs that run what follows a subcommand of theirs.
_RUNNERS = {
    "poetry": ("run",),
    "uv": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "bundle": ("exec",),
    "npm": ("exec", "x"),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec",),
    "git": ("bisect run", "submodule foreach", "rebase --exec", "rebase -x", "difftool -x", "difftool --extcmd"),
    "npx": ("",),
    "bunx": ("",),
    "uvx": ("",),
    "pipx": ("run",),
    "perf": ("stat", "record", "trace"),
    "gdb": ("--args",),
}


def unwrapped(simple: Simple) -> Simple:
    """The command behind prefix programs; unchanged if there are none."""
    for _ in range(20):
        prefix = PREFIXES.get(simple.program)
        if prefix is None or len(simple.words) < 2 or set(simple.words[1:2]) & set(_ASKING.get(simple.program, ())):
            return simple
        words, set_here = _behind(list(simple.words[1:]), prefix)
        if not words:
            return simple
        simple = replace(
            simple,
            words=_with_appended(simple, words),
            prefixes=(*simple.prefixes, simple.program),
            variables={**simple.variables, **set_here},
        )
    return simple


def _behind(words: list[str], prefix: Prefix) -> tuple[list[str], dict[str, str]]:
    set_here: dict[str, str] = {}
    operands = prefix.operands
    while words:
        if words[0] == "--":
            words.pop(0)
        elif words[0].startswith("-") and words[0] != "-":
            option = words.pop(0)
            if option in ("-S", "--split-string") and words and prefix is PREFIXES["env"]:
                words[:1] = words[0].split()
            elif option in prefix.valued and words:
                words.pop(0)
        elif re.match(ASSIGNMENT, words[0]):
            name, _, value = words.pop(0).partition("=")
            set_here[name] = value
        elif operands:
            words.pop(0)
            operands -= 1
        else:
            break
    return words, set_here


def _with_appended(simple: Simple, words: list[str]) -> tuple[str, ...]:
    """The words with those that `xargs` adds, at the end or at its placeholder."""
    added = _appended(simple)
    sign = simple.value("-I", "--replace") or "{}"
    return (*(word.replace(sign, COMPUTED) if added == (COMPUTED,) else word for word in words), *added)


def _appended(simple: Simple) -> tuple[str, ...]:
    """What `xargs` appends: names of local files, or something unknown."""
    if simple.program not in ("xargs", "parallel"):
        return ()
    if simple.stdin is not None:
        return tuple(simple.stdin.split()[:50])
    return (NAME if lists_names(simple.fed_by) else COMPUTED,)


def commands_in(simple: Simple) -> Iterator[Simple]:
    """Commands given as arguments: of `find -exec`, and of programs that run others."""
    if simple.program in ("find", "fd", "fdfind"):
        yield from _executed(simple)
    for runner in _RUNNERS.get(simple.program, ()):
        behind = _after(list(simple.arguments), runner.split())
        if behind:
            yield replace(simple, words=_split(behind), prefixes=(*simple.prefixes, simple.program))
    if simple.program in ("docker", "podman", "nerdctl") and simple.words[1:2] == ("exec",):
        inside, _ = _behind(list(simple.words[2:]), _IN_CONTAINER)
        yield replace(simple, words=tuple(inside), prefixes=(*simple.prefixes, simple.program))
    if simple.program == "ssh" and (remote := _remote(simple)):
        yield replace(simple, words=_split(remote), prefixes=(*simple.prefixes, "ssh"), folder="~", writes=())


def _after(words: list[str], runner: list[str]) -> list[str]:
    """The command after the words that make a program run it."""
    for index in range(len(words)):
        if words[index : index + len(runner)] == runner:
            behind = words[index + len(runner) :]
            while behind and (behind[0].startswith("-") or re.match(ASSIGNMENT, behind[0])):
                behind.pop(0)
            return behind
    return []


def _split(words: list[str]) -> tuple[str, ...]:
    """The words of a command given as one text."""
    return tuple(words[0].split()) if len(words) == 1 else tuple(words)


def _executed(simple: Simple) -> Iterator[Simple]:
    start = next((word for word in simple.arguments if not word.startswith("-")), ".")
    found = f"{start.rstrip('/')}/{NAME}"
    words: list[str] | None = None
    for word in (*simple.arguments, ";"):
        if words is None:
            words = [] if word in _EXECUTES else None
        elif word in (";", "+"):
            if words:
                yield replace(simple, words=tuple(words), prefixes=(*simple.prefixes, "find"), writes=())
            words = None
        else:
            words.append(word.replace("{}", found))


_EXECUTES = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")


def _remote(simple: Simple) -> list[str]:
    words = list(simple.arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option[:2] in ("-p", "-i", "-l", "-o", "-L", "-R", "-D", "-F", "-J", "-b", "-c") and len(option) == 2:
            words = words[1:]
    return words[1:]


def scripts_of(simple: Simple) -> Iterator[str]:
    """Shell scripts that this command runs: `sh -c`, `eval`, `trap`, `su -c`, or a file this command wrote."""
    program = simple.program
    if program in SHELLS:
        yield from _of_shells(simple)
    elif program in ("source", "."):
        yield from _written_before(simple, next(iter(simple.operands), ""))
    elif program == "eval":
        text = " ".join(simple.arguments)
        if text != COMPUTED:  # What a program prints is judged as that.
            yield text
    elif program == "trap" and len(simple.operands) > 1:
        yield simple.operands[0]
    elif program in ("su", "runuser", "script", "flock", "nix-shell"):
        yield from filter(None, (simple.value("-c", "--command", "--run"),))
    elif program in ("tmux", "hyperfine"):
        yield from (word for word in simple.operands if " " in word)
    elif simple.prefixes and " " in (simple.words or ("",))[0].strip():
        yield simple.words[0]  # `watch 'a b'` and the like give it to a shell
    else:
        yield from _written_before(simple, (simple.words or ("",))[0])


def _of_shells(simple: Simple) -> Iterator[str]:
    script = _after_c(simple.arguments)
    if script is not None:
        yield script
    elif not simple.operands and simple.stdin is not None:
        yield simple.stdin
    else:
        yield from _written_before(simple, next(iter(simple.operands), ""))


def _after_c(arguments: tuple[str, ...]) -> str | None:
    for index, word in enumerate(arguments):
        if re.fullmatch(r"-\w*c\w*|--command", word) and index + 1 < len(arguments):
            return arguments[index + 1]
        if not word.startswith(("-", "+")):
            return None
    return None


def _written_before(simple: Simple, script: str) -> Iterator[str]:
    """The content of a script that this command wrote before, unless it is in another language."""
    absolute = script if script.startswith("/") else f"{simple.folder.rstrip('/')}/{script.removeprefix('./')}"
    text = simple.files.get(absolute) if script else None
    if text and not re.match(_OTHER_LANGUAGE, text):
        yield text
