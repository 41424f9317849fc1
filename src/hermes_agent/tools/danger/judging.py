"""Judges shell commands, and text typed into running ones: tests each program in them for danger."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from hermes_agent.tools.danger import code, losses, network, rights
from hermes_agent.tools.danger.losses import BLOCKS, FORK_BOMB, LAST_RESORT
from hermes_agent.tools.danger.network import INTERPRETERS
from hermes_agent.tools.danger.paths import touches_credentials, written
from hermes_agent.tools.danger.verdict import Verdict, Where
from hermes_agent.tools.syntax.reading import Reading, read
from hermes_agent.tools.syntax.simple import Simple, is_known
from hermes_agent.tools.syntax.words import Unreadable
from hermes_agent.tools.syntax.wrapped import SHELLS

ASKS: tuple[tuple[Callable[[Simple], bool], str], ...] = (
    (losses.deletes_recursively, "it deletes recursively"),
    (losses.deletes_what_is_found, "it deletes what a search finds"),
    (rights.opens_to_all, "it lets everybody write, or run with its owner's rights"),
    (lambda simple: simple.program in ("chown", "chgrp") and simple.has("R", "--recursive"), "it gives a tree away"),
    (network.runs_what_it_fetches, "it runs what another program prints"),
    (network.holds_an_unknown_script, "the script that it runs is computed"),
    (network.opens_a_door, "it opens a connection that programs can be steered through"),
    (network.sends_away, "it sends something to another machine"),
    (network.acts_elsewhere, "it acts on another machine"),
    (losses.rewrites_history, "it discards work or rewrites history"),
    (rights.acts_as_another, "it acts as another user"),
    (losses.kills_widely, "it ends processes that it did not name one by one"),
    (rights.is_computed, "the program that it runs is computed"),
    (rights.loads_other_code, "it changes which code programs load"),
    (rights.starts_a_shell, "it makes a program start a shell"),
    (rights.changes_the_system, "it changes the system or what others use"),
    (rights.changes_containers, "it removes containers or opens the machine to one"),
    (losses.fills, "it may fill the disk"),
    (touches_credentials, "it touches credentials"),
)

READERS = frozenset(("cat", "echo", "false", "grep", "head", "ls", "pwd", "stat", "tail", "true", "wc"))
"""Programs that change nothing, whatever their arguments are; a redirection is looked at by itself. This is a hint, not
a wall: functions, aliases and the PATH of a kept shell can give these names another meaning."""


def judge(command: str, where: Where) -> Verdict:
    """Parse a command and return its verdict; follows `cd`."""
    if re.search(FORK_BOMB, re.sub(r"\s+", "", command)):
        return Verdict(blocked="it is a fork bomb")
    try:
        reading = read(command, where.folder)
    except (Unreadable, RecursionError) as error:
        looks = re.search(LAST_RESORT, command)
        blocked = "it looks like the destruction of a disk or home" if looks else ""
        return Verdict(blocked=blocked, asks=(f"it cannot be read as a command ({error})",))
    return judged(reading, where)


def judged(reading: Reading, where: Where) -> Verdict:
    """The verdict on a parsed command."""
    if reading.is_fork_bomb:
        return Verdict(blocked="it is a fork bomb")
    for simple in reading.simples:
        for test, reason in BLOCKS:
            if test(simple):
                return Verdict(blocked=reason)
    asks = ["it starts processes without end"] if reading.is_endless else []
    for simple in reading.simples:
        asks += [reason for test, reason in ASKS if test(simple)]
        inside = replace(where, folder=simple.folder)
        if inside.is_closed and not _only_reads(simple):
            asks.append("it runs in this program's own source")
        asks += [
            f"it writes outside the workspace ({_shown(path)})" for path in written(simple) if inside.is_outside(path)
        ]
        asks += _code_in(simple, inside)
    return Verdict(asks=tuple(dict.fromkeys(asks)))


def _only_reads(simple: Simple) -> bool:
    """Whether it is a plain read-only program, called by name and without its own variables."""
    return simple.words[:1] == (simple.program,) and simple.program in READERS and not simple.variables


def _code_in(simple: Simple, where: Where) -> list[str]:
    asks: list[str] = []
    for reason, paths in code.held_by(simple):
        if reason != code.WRITES:
            asks.append(reason)
        asks += [f"it writes outside the workspace ({_shown(path)})" for path in paths if where.is_outside(path)]
    return asks


def _shown(path: str) -> str:
    """A path for people; unknown parts become three dots."""
    return re.sub("[\ue000-\ue012]+", "...", path)


# What may have a shell behind it that the command does not name.
ELSEWHERE = {
    "su",
    "sudo",
    "doas",
    "ssh",
    "mosh",
    "telnet",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "lxc",
    "apptainer",
    "singularity",
    "machinectl",
    "chroot",
    "unshare",
    "nsenter",
    "tmux",
    "screen",
    "script",
    "expect",
    "vagrant",
    "adb",
    "wsl",
    "nix-shell",
    "nix",
    "conda",
    "poetry",
    "pipenv",
    "newgrp",
    "sg",
    "login",
    "busybox",
}
KEYS = r"[\x03\x04\x1a\x1c]*"  # they interrupt, end the input, suspend, quit
EDITS = r"[\x00-\x08\x0b-\x1f\x7f]|\\\n?\Z"  # a line that is changed or gone on with afterwards


def judge_input(running: str, data: str, where: Where) -> Verdict:
    """The verdict on writing `data` to the running command; empty if no shell or interpreter reads it."""
    try:
        programs = read(running, where.folder).simples
    except (Unreadable, RecursionError):
        return _to_shell(data, where)
    if any(simple.program in SHELLS | ELSEWHERE or not is_known(simple.program) for simple in programs):
        return _to_shell(data, where)
    talks = [each.program for each in programs if each.program in INTERPRETERS and not each.operands]
    if talks and not re.fullmatch(KEYS, data):
        return Verdict(asks=(f"it sends a program to `{talks[0]}`, and what a program does cannot be read off it",))
    return Verdict()


def _to_shell(data: str, where: Where) -> Verdict:
    if re.fullmatch(KEYS, data):
        return Verdict()
    verdict = judge(data, where)
    if verdict.blocked or (data.endswith("\n") and not re.search(EDITS, data.removesuffix("\n"))):
        return verdict
    return Verdict(asks=(*verdict.asks, "it types a part of a line, or keys that change one, into a shell"))
