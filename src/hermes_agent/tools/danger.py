"""Which commands are never run, and which wait for a person's yes; tables first, so that they can be argued with."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_agent.tools.commands import SHELLS, Simple, Unreadable, read


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Folders whose loss is the loss of the machine or of the person's work.
VITAL = _words(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /sys /usr /var /Users /System /Library"
    " ~ $HOME ${HOME}"
)
HARMLESS_DEVICES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"))
POWER = frozenset(("shutdown", "reboot", "halt", "poweroff"))
DISK_MAKERS = re.compile(r"mkfs(\..+)?|mkswap|wipefs|fdisk|sfdisk|gdisk|sgdisk|cfdisk|parted|blkdiscard|mke2fs")
INTERPRETERS = SHELLS | {"python", "python3", "perl", "ruby", "node", "php", "lua", "osascript"}
# Programs that change the system or what others use: the subcommands that do, or none named for all of them.
SYSTEM_CHANGES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("systemctl", "service", "launchctl"), _words("stop disable mask restart kill unload bootout")),
    **dict.fromkeys(("iptables", "nft", "ufw", "mount", "umount", "swapoff", "cryptsetup"), frozenset()),
    **dict.fromkeys(("useradd", "userdel", "usermod", "groupdel", "passwd", "chpasswd", "visudo"), frozenset()),
    **dict.fromkeys(("docker", "podman"), _words("prune")),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "cargo", "gem", "poetry", "twine"), _words("publish unpublish upload yank")
    ),
    **dict.fromkeys(("kubectl", "terraform", "helm"), _words("delete destroy uninstall drain")),
}
# A function that pipes into itself in the background, whatever its name; seen with all spaces taken out.
FORK_BOMB = re.compile(r"([\w:.]+)\(\)\{[^}]*\1\|\1&")
# What strings inside programs of other languages hint at.
HINTS = re.compile(
    r"shutil\.rmtree|os\.(remove|unlink|rmdir|system)|rm\s+-\w*r|rimraf|unlinkSync|rmSync|DROP\s+(TABLE|DATABASE)|TRUNCATE\s+TABLE"
    r"|DELETE\s+FROM\s+\w+\s*;?\s*$",
    re.IGNORECASE,
)
CREDENTIALS = re.compile(
    r"(^|/)(\.ssh|\.gnupg|\.aws|\.netrc|\.git-credentials|\.pgpass)(/|$)|^/etc/shadow|\.hermes/\.env$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What reading a command found: the reason it is never run, or the reasons to ask; both empty where it is fine."""

    blocked: str = ""
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a command runs: its working directory, and the folders in which it may write without asking."""

    folder: str
    writable: tuple[str, ...]

    def is_outside(self, path: str) -> bool:
        """Whether a path that a command writes to is outside the writable folders. A path with a variable counts as
        outside: nobody knows where it leads."""
        if path in HARMLESS_DEVICES or path.startswith(("/dev/fd/", "&")) or path.isdecimal() or path == "-":
            return False
        if re.match(r"\$|~", path):
            return True
        real = os.path.realpath(Path(self.folder) / path)
        return not any(real == top or real.startswith(f"{top}/") for top in map(os.path.realpath, self.writable))


def judge(command: str, where: Where) -> Verdict:
    """Read a command and say what speaks against it; `cd` in it is followed."""
    if FORK_BOMB.search(re.sub(r"\s+", "", command)):
        return Verdict(blocked="it is a fork bomb")
    try:
        simples = _placed(read(command), where.folder)
    except Unreadable as error:
        return Verdict(blocked=_blocked_anyway(command), asks=(f"it cannot be read as shell words ({error})",))
    for simple in simples:
        for test, reason in BLOCKS:
            if test(simple):
                return Verdict(blocked=reason)
    asks = [reason for simple in simples for test, reason in ASKS if test(simple)]
    for simple in simples:
        inside = replace(where, folder=simple.folder)
        asks += [f"it writes outside the workspace ({path})" for path in _written(simple) if inside.is_outside(path)]
    return Verdict(asks=tuple(dict.fromkeys(asks)))


def _blocked_anyway(command: str) -> str:
    """A hint for text that cannot be read: what would be blocked is blocked there too."""
    found = re.search(r"\brm\s+(-\w+\s+)*-\w*[rR]\w*\s+(-\w+\s+)*(/|~|\$HOME)(\s|\*|$)|\bmkfs", command)
    return "it looks like the destruction of a disk or home" if found else ""


def _placed(simples: tuple[Simple, ...], folder: str) -> tuple[Simple, ...]:
    """The commands, each with the folder that the `cd`s before it lead to."""
    placed: list[Simple] = []
    for simple in simples:
        placed.append(replace(simple, folder=folder))
        if simple.program in ("cd", "pushd"):
            to = next(iter(simple.operands), "~")
            folder = to if to[:1] in ("~", "$") else os.path.normpath(Path(folder) / to)
    return tuple(placed)


def _vital(simple: Simple, words: tuple[str, ...]) -> bool:
    """Whether one of these paths is a vital folder as a whole: `/etc`, `/etc/` and `/etc/*` are."""
    for word in filter(None, words):
        stripped = re.sub(r"(^|/+)(\.?\*|\.)?$", "", word)
        if stripped or word.startswith("/"):
            target = os.path.normpath(stripped) if stripped else "/"
        else:
            target = simple.folder
        if target in VITAL or (target[:1] not in "~$" and os.path.normpath(Path(simple.folder) / target) in VITAL):
            return True
    return False


def _destroys(simple: Simple) -> bool:
    """Removes or hands over a vital folder as a whole."""
    recursive = simple.has("rR", "--recursive", "--no-preserve-root")
    match simple.program:
        case "rm":
            return recursive and _vital(simple, simple.operands)
        case "chmod" | "chown" | "chgrp":
            return recursive and _vital(simple, simple.operands[1:])
        case "find":
            deletes = "-delete" in simple.arguments or "rm" in simple.arguments
            narrowed = any(
                word.startswith(("-name", "-iname", "-path", "-mtime", "-size")) for word in simple.arguments
            )
            return deletes and not narrowed and _vital(simple, simple.operands[:1])
        case "mv":
            return _vital(simple, simple.operands[:-1])
        case _:
            return False


def _overwrites_a_device(simple: Simple) -> bool:
    targets = [
        *simple.writes,
        *(word[3:] for word in simple.arguments if word.startswith("of=") and simple.program == "dd"),
    ]
    if simple.program in ("tee", "shred", "cp"):
        targets += simple.operands
    return any(path.startswith("/dev/") and not _is_harmless_device(path) for path in targets)


def _is_harmless_device(path: str) -> bool:
    return path in HARMLESS_DEVICES or path.startswith(("/dev/fd/", "/dev/shm/", "/dev/pts/"))


def _powers_off(simple: Simple) -> bool:
    if simple.program in POWER:
        return "--help" not in simple.arguments
    if simple.program in ("init", "telinit"):
        return bool({"0", "6"} & set(simple.arguments))
    return simple.program == "systemctl" and bool({*POWER, "kexec", "suspend", "hibernate"} & set(simple.arguments))


def _makes_a_file_system(simple: Simple) -> bool:
    reads = {"-l", "--list", "-V", "--version", "--help", "-h"} & set(simple.arguments)
    return bool(DISK_MAKERS.fullmatch(simple.program)) and not reads


def _deletes_recursively(simple: Simple) -> bool:
    match simple.program:
        case "rm":
            return simple.has("rR", "--recursive")
        case "find":
            return "-delete" in simple.arguments or any(word in ("rm", "shred", "unlink") for word in simple.arguments)
        case _:
            return simple.program in ("shred", "srm")


def _opens_to_all(simple: Simple) -> bool:
    if simple.program != "chmod":
        return False
    mode = next(iter(simple.operands), "")
    return bool(re.fullmatch(r"[0-7]?[0-7][0-7][2367]|.*[ao].*[+=].*w.*|[+=].*w.*", mode))


def _runs_what_it_fetches(simple: Simple) -> bool:
    return simple.program in INTERPRETERS and bool(simple.fed_by) and not _names_a_script(simple)


def _names_a_script(simple: Simple) -> bool:
    """An interpreter with a program of its own reads the pipe as data."""
    return bool(simple.operands) or any(re.fullmatch(r"-\w*[cme]", word) for word in simple.arguments)


def _rewrites_history(simple: Simple) -> bool:
    words = simple.arguments
    if simple.program != "git":
        return False
    if "push" in words:
        forced = simple.has("f", "--force", "--force-with-lease", "--mirror", "--delete")
        return forced or any(word.startswith(("+", ":")) for word in words)
    return ("reset" in words and "--hard" in words) or ("clean" in words and simple.has("f", "--force"))


def _kills_widely(simple: Simple) -> bool:
    return simple.program in ("pkill", "killall") or (simple.program == "kill" and "-1" in simple.arguments[-1:])


def _is_computed(simple: Simple) -> bool:
    """The program's name is not written out, so nobody can tell what runs."""
    return bool(simple.words) and simple.words[0][:1] in ("$", "`")


def _hints(simple: Simple) -> bool:
    inline = simple.program.rstrip("0123456789.") in INTERPRETERS | {"psql", "mysql", "sqlite", "mongosh", "redis-cli"}
    return inline and any(HINTS.search(word) for word in simple.arguments)


def _changes_the_system(simple: Simple) -> bool:
    words = SYSTEM_CHANGES.get(simple.program)
    if simple.program == "crontab":
        return simple.has("r") or bool(simple.operands) or "-" in simple.arguments
    return words is not None and (not words or bool(words & set(simple.operands)))


def _touches_credentials(simple: Simple) -> bool:
    return any(CREDENTIALS.search(word) for word in (*simple.operands, *simple.writes))


def _written(simple: Simple) -> list[str]:
    """Paths that this command writes to, as far as words tell; not those on other machines."""
    found = list(simple.writes)
    match simple.program:
        case "cp" | "mv" | "install" | "rsync" | "ln" | "scp":
            found += simple.operands[-1:] if len(simple.operands) > 1 else ()
        case "tee" | "touch" | "mkdir" | "truncate" | "rm" | "rmdir" | "unlink":
            found += simple.operands
        case "sed" | "perl" if simple.has("i", "--in-place"):
            found += simple.operands[1:]
        case "dd":
            found += [word[3:] for word in simple.arguments if word.startswith("of=")]
    return [path for path in found if path and not re.match(r"[\w.-]+@?[\w.-]*:", path)]


Test = Callable[[Simple], bool]
BLOCKS: tuple[tuple[Test, str], ...] = (
    (_destroys, "it would destroy the system or a home folder"),
    (_makes_a_file_system, "it would erase a disk"),
    (_overwrites_a_device, "it would write over a device"),
    (_powers_off, "it would turn the machine off"),
)
ASKS: tuple[tuple[Test, str], ...] = (
    (_deletes_recursively, "it deletes recursively"),
    (_opens_to_all, "it lets everybody write"),
    (lambda simple: simple.program in ("chown", "chgrp") and simple.has("R", "--recursive"), "it gives a tree away"),
    (_runs_what_it_fetches, "it runs what another program prints"),
    (_rewrites_history, "it discards work or rewrites history"),
    (lambda simple: bool({"sudo", "doas"} & {*simple.prefixes, simple.program}), "it acts as another user"),
    (lambda simple: simple.program in ("su", "pkexec", "runuser"), "it acts as another user"),
    (_kills_widely, "it ends processes that it did not name one by one"),
    (_is_computed, "the program that it runs is computed"),
    (_hints, "it holds code that deletes"),
    (_changes_the_system, "it changes the system or what others use"),
    (_touches_credentials, "it touches credentials"),
)
