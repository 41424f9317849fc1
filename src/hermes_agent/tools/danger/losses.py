"""Tests for destructive commands: some are always blocked; those that lose work or files need approval."""

from __future__ import annotations

import re
from collections.abc import Callable

from hermes_agent.tools.danger.paths import is_vital
from hermes_agent.tools.danger.verdict import HARMLESS_DEVICES
from hermes_agent.tools.syntax.simple import COMPUTED, NAME, Simple, is_known

POWER = frozenset(("shutdown", "reboot", "halt", "poweroff"))
DISK_MAKERS = (
    r"mkfs(\..+)?|mkswap|wipefs|fdisk|sfdisk|gdisk|sgdisk|cfdisk|parted|blkdiscard|mke2fs|mkntfs|mkdosfs|mkexfatfs|newfs|badblocks"
    r"|hdparm|nvme|lvremove|vgremove|pvremove|zpool|cryptsetup|diskutil|format|sgdisk|dmsetup"
)
_ONLY_SOME = {
    "badblocks": r"-\w*[wn]",
    "hdparm": r"--(security-erase|trim|write|make-bad).*|--security-.*",
    "nvme": r"format|sanitize|write-zeroes",
    "zpool": r"destroy|labelclear",
    "cryptsetup": r"luksFormat|erase|luksErase|reencrypt",
    "diskutil": r"(?i)erase\w*|partitionDisk|zeroDisk|secureErase",
    "dmsetup": r"wipe_table|remove_all",
    "format": r"[A-Za-z]:",
    "parted": r"mklabel|mkpart|rm|mktable",
}
_LOOKS = frozenset(("-l", "--list", "-V", "--version", "--help", "-h", "print", "-p"))
_REAL_DEVICES = r"/dev/(?!(fd|shm|pts|tcp|udp|loop-control|tty\w*|random|urandom|net)(/|$))\w+"
_KERNEL = r"^/proc/(sysrq-trigger|kcore|mem)|^/sys/power/|^/dev/k?mem"


def destroys(simple: Simple) -> bool:
    """Deletes, empties or changes the owner of a vital folder as a whole."""
    recursive = simple.has("rR", "--recursive", "--no-preserve-root") or "--no-preserve-root" in simple.arguments
    match simple.program:
        case "rm" | "srm" | "rimraf" | "trash" | "unlink":
            return (recursive or simple.program == "rimraf") and is_vital(simple, simple.operands)
        case "chmod" | "chown" | "chgrp" | "setfacl":
            return recursive and is_vital(simple, simple.operands[1:])
        case "find":
            return _finds_all(simple)
        case "mv":
            return is_vital(simple, simple.operands[:-1])
        case "rsync":
            empties = any(word.startswith("--del") for word in simple.arguments)
            return empties and is_vital(simple, simple.operands[-1:])
        case _:
            return False


def _finds_all(simple: Simple) -> bool:
    deletes = any(word in ("-delete", "rm", "shred", "unlink") for word in simple.arguments)
    narrowed = any(word.startswith(_NARROWING) for word in simple.arguments)
    return deletes and not narrowed and is_vital(simple, simple.operands[:1])


_NARROWING = (
    "-name",
    "-iname",
    "-path",
    "-mtime",
    "-mmin",
    "-size",
    "-regex",
    "-user",
    "-newer",
    "-maxdepth 0",
    "-empty",
)


def overwrites_a_device(simple: Simple) -> bool:
    """Writes to a disk, memory or kernel control file."""
    targets = list(simple.writes)
    if simple.program == "dd":
        targets += [word[3:] for word in simple.arguments if word.startswith("of=")]
    if simple.program in ("tee", "shred", "truncate", "scrub"):
        targets += simple.operands
    if simple.program in ("cp", "mv", "pv", "install"):
        targets += simple.operands[-1:]
    return any(_is_a_real_device(path.replace(NAME, "x")) for path in targets)


def _is_a_real_device(path: str) -> bool:
    return bool(re.match(_KERNEL, path)) or (path not in HARMLESS_DEVICES and bool(re.match(_REAL_DEVICES, path)))


def powers_off(simple: Simple) -> bool:
    """Shuts the machine down or restarts it."""
    if simple.program in POWER:
        return not {"--help", "-c", "--version"} & set(simple.arguments)
    if simple.program in ("init", "telinit"):
        return bool({"0", "6"} & set(simple.arguments))
    states = {*POWER, "kexec", "suspend", "hibernate", "emergency", "rescue"}
    return simple.program == "systemctl" and bool(states & set(simple.arguments))


def makes_a_file_system(simple: Simple) -> bool:
    """Formats or partitions a disk."""
    if not re.fullmatch(DISK_MAKERS, simple.program) or _LOOKS & set(simple.arguments):
        return False
    some = _ONLY_SOME.get(simple.program)
    return bool(simple.arguments) and (some is None or any(re.fullmatch(some, word) for word in simple.arguments))


Test = Callable[[Simple], bool]
BLOCKS: tuple[tuple[Test, str], ...] = (
    (destroys, "it would destroy the system or a home folder"),
    (makes_a_file_system, "it would erase a disk"),
    (overwrites_a_device, "it would write over a device"),
    (powers_off, "it would turn the machine off"),
)
# What is looked for in text that cannot be read as a command.
LAST_RESORT = (
    r"\brm\s+(-\w+\s+)*-\w*[rR]\w*\s+(-\S+\s+)*['\"]?(/|~|\$HOME|\$\{HOME\})['\"]?(\s|\*|$|;|/\s|/$)|\bmkfs|>\s*/dev/(sd|nvme|hd|vd)"
    r"|\bdd\b[^\n]*\bof=/dev/(sd|nvme|hd|vd|disk|mmcblk)"
)
FORK_BOMB = r"([\w:.]+)\(\)\{[^}]*\1\|\1&"


def deletes_recursively(simple: Simple) -> bool:
    """Deletes trees, or erases files beyond recovery."""
    match simple.program:
        case "rm":
            return simple.has("rR", "--recursive") or any(not is_known(word) for word in simple.operands)
        case "find":
            return "-delete" in simple.arguments
        case "rsync":
            return any(word.startswith("--del") or word == "--remove-source-files" for word in simple.arguments)
        case "mv":
            return bool(simple.operands) and simple.operands[-1] == "/dev/null"
        case "unlink":
            return False
        case program:
            return program in ("shred", "srm", "wipe", "scrub", "rimraf")


def deletes_what_is_found(simple: Simple) -> bool:
    """Deletes files that a search found."""
    return simple.program in ("rm", "shred", "unlink") and bool({"find", "xargs", "parallel"} & set(simple.prefixes))


def rewrites_history(simple: Simple) -> bool:
    """Discards work or rewrites shared version history."""
    if simple.program == "svn":
        return "revert" in simple.operands and simple.has("R")
    if simple.program == "hg":
        return bool({"strip", "purge"} & set(simple.operands)) or ("update" in simple.operands and simple.has("C"))
    if simple.program == "gh":
        return bool({"delete", "archive", "transfer"} & set(simple.operands[:2])) or ("merge" in simple.operands[:2])
    words = _of_git(simple)
    if simple.program != "git" or not words:
        return False
    if words[0] == "push":
        forced = simple.has("fd", "--force", "--force-with-lease", "--mirror", "--delete", "--prune")
        return forced or any(word.startswith(("+", ":")) for word in words)
    return any(words[0] == first and rule(simple, words) for first, rule in _DISCARDS)


def _of_git(simple: Simple) -> tuple[str, ...]:
    """A git command's words from its subcommand on."""
    words = list(simple.arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-C", "-c", "--git-dir", "--work-tree") and words:
            words.pop(0)
    return tuple(words)


_DISCARDS = (
    ("reset", lambda simple, _: simple.has("", "--hard", "--merge")),
    ("clean", lambda simple, _: simple.has("f", "--force") and not simple.has("n", "--dry-run")),
    ("checkout", lambda simple, words: "." in words or ":/" in words or simple.has("f", "--force")),
    ("restore", lambda _, words: ("." in words or ":/" in words) and "--staged" not in words),
    ("switch", lambda simple, _: simple.has("f", "--discard-changes", "--force")),
    ("branch", lambda simple, _: simple.has("D") or (simple.has("d", "--delete") and simple.has("f", "--force"))),
    ("stash", lambda _, words: bool({"drop", "clear"} & set(words[:2]))),
    ("reflog", lambda _, words: bool({"expire", "delete"} & set(words[:2]))),
    ("gc", lambda simple, _: any(word.startswith("--prune") for word in simple.arguments)),
    ("update-ref", lambda simple, _: simple.has("d")),
    ("filter-branch", lambda *_: True),
    ("filter-repo", lambda *_: True),
    ("worktree", lambda simple, words: "remove" in words and simple.has("f", "--force")),
    ("submodule", lambda simple, words: "deinit" in words and simple.has("f", "--force")),
    ("tag", lambda simple, _: simple.has("d", "--delete")),
    ("rm", lambda simple, _: simple.has("r") and not simple.has("", "--cached")),
    ("credential", lambda *_: True),
)


def kills_widely(simple: Simple) -> bool:
    """Kills processes by pattern instead of one by one."""
    if simple.program in ("pkill", "killall", "killall5", "skill", "slay", "xkill"):
        return "-0" not in simple.arguments
    if simple.program == "fuser":
        return simple.has("k", "--kill")
    targets = simple.arguments[1:] or simple.arguments
    return simple.program == "kill" and (
        "-1" in targets[-1:] or "1" in simple.operands or any(COMPUTED in word for word in simple.operands)
    )


def fills(simple: Simple) -> bool:
    """Writes endlessly, or more than a disk holds."""
    endless = {"/dev/zero", "/dev/urandom", "/dev/random"}
    if simple.program == "dd":
        source = next((word[3:] for word in simple.arguments if word.startswith("if=")), "")
        target = next((word[3:] for word in simple.arguments if word.startswith("of=")), "")
        return source in endless and bool(target) and not any(word.startswith("count=") for word in simple.arguments)
    if simple.program == "fallocate" or (simple.program == "truncate" and simple.value("-s", "--size")):
        return bool(re.search(r"\d{3,}G|\d+[TPE]", simple.value("-l", "-s", "--length", "--size")))
    if simple.program == "yes":
        return any(path not in ("/dev/null",) and not path.isdecimal() for path in simple.writes)
    reads_endless = bool(endless & {*simple.operands, *simple.reads})
    return (
        simple.program in ("cat", "tee", "cp", "pv") and reads_endless and bool(simple.writes or simple.program == "cp")
    )
