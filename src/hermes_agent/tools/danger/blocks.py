"""The hard block: what would destroy the machine, its disks or a home; nothing can allow it."""

from __future__ import annotations

import re
from collections.abc import Callable

from hermes_agent.tools.danger.paths import is_vital
from hermes_agent.tools.danger.verdict import HARMLESS_DEVICES
from hermes_agent.tools.syntax.simple import NAME, Simple

POWER = frozenset(("shutdown", "reboot", "halt", "poweroff"))
DISK_MAKERS = re.compile(
    r"mkfs(\..+)?|mkswap|wipefs|fdisk|sfdisk|gdisk|sgdisk|cfdisk|parted|blkdiscard|mke2fs|mkntfs|mkdosfs|mkexfatfs|newfs|badblocks"
    r"|hdparm|nvme|lvremove|vgremove|pvremove|zpool|cryptsetup|diskutil|format|sgdisk|dmsetup"
)
_ONLY_SOME = {
    "badblocks": re.compile(r"-\w*[wn]"),
    "hdparm": re.compile(r"--(security-erase|trim|write|make-bad).*|--security-.*"),
    "nvme": re.compile(r"format|sanitize|write-zeroes"),
    "zpool": re.compile(r"destroy|labelclear"),
    "cryptsetup": re.compile(r"luksFormat|erase|luksErase|reencrypt"),
    "diskutil": re.compile(r"erase\w*|partitionDisk|zeroDisk|secureErase", re.IGNORECASE),
    "dmsetup": re.compile(r"wipe_table|remove_all"),
    "format": re.compile(r"[A-Za-z]:"),
    "parted": re.compile(r"mklabel|mkpart|rm|mktable"),
}
_LOOKS = frozenset(("-l", "--list", "-V", "--version", "--help", "-h", "print", "-p"))
_REAL_DEVICES = re.compile(r"/dev/(?!(fd|shm|pts|tcp|udp|loop-control|tty\w*|random|urandom|net)(/|$))\w+")
_KERNEL = re.compile(r"^/proc/(sysrq-trigger|kcore|mem)|^/sys/power/|^/dev/k?mem")


def destroys(simple: Simple) -> bool:
    """Removes, empties or hands over a vital folder as a whole."""
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
    """Writes to a disk, to memory or to a switch of the kernel."""
    targets = list(simple.writes)
    if simple.program == "dd":
        targets += [word[3:] for word in simple.arguments if word.startswith("of=")]
    if simple.program in ("tee", "shred", "truncate", "scrub"):
        targets += simple.operands
    if simple.program in ("cp", "mv", "pv", "install"):
        targets += simple.operands[-1:]
    return any(_is_a_real_device(path.replace(NAME, "x")) for path in targets)


def _is_a_real_device(path: str) -> bool:
    return bool(_KERNEL.match(path)) or (path not in HARMLESS_DEVICES and bool(_REAL_DEVICES.match(path)))


def powers_off(simple: Simple) -> bool:
    """Turns the machine off or on again."""
    if simple.program in POWER:
        return not {"--help", "-c", "--version"} & set(simple.arguments)
    if simple.program in ("init", "telinit"):
        return bool({"0", "6"} & set(simple.arguments))
    states = {*POWER, "kexec", "suspend", "hibernate", "emergency", "rescue"}
    return simple.program == "systemctl" and bool(states & set(simple.arguments))


def makes_a_file_system(simple: Simple) -> bool:
    """Erases a disk or what describes it."""
    if not DISK_MAKERS.fullmatch(simple.program) or _LOOKS & set(simple.arguments):
        return False
    some = _ONLY_SOME.get(simple.program)
    return bool(simple.arguments) and (some is None or any(some.fullmatch(word) for word in simple.arguments))


Test = Callable[[Simple], bool]
BLOCKS: tuple[tuple[Test, str], ...] = (
    (destroys, "it would destroy the system or a home folder"),
    (makes_a_file_system, "it would erase a disk"),
    (overwrites_a_device, "it would write over a device"),
    (powers_off, "it would turn the machine off"),
)
# What is looked for in text that cannot be read as a command.
LAST_RESORT = re.compile(
    r"\brm\s+(-\w+\s+)*-\w*[rR]\w*\s+(-\S+\s+)*['\"]?(/|~|\$HOME|\$\{HOME\})['\"]?(\s|\*|$|;|/\s|/$)|\bmkfs|>\s*/dev/(sd|nvme|hd|vd)"
    r"|\bdd\b[^\n]*\bof=/dev/(sd|nvme|hd|vd|disk|mmcblk)"
)
FORK_BOMB = re.compile(r"([\w:.]+)\(\)\{[^}]*\1\|\1&")
