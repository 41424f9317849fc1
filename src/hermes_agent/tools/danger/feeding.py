"""Judges what is written to the input of a command that runs: a shell there runs it."""

from __future__ import annotations

import re

from hermes_agent.tools.danger.judging import judge
from hermes_agent.tools.danger.network import INTERPRETERS
from hermes_agent.tools.danger.verdict import Verdict, Where
from hermes_agent.tools.syntax.reading import read
from hermes_agent.tools.syntax.simple import is_known
from hermes_agent.tools.syntax.tree import Unreadable
from hermes_agent.tools.syntax.wrapped import SHELLS

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
KEYS = re.compile(r"[\x03\x04\x1a\x1c]*")  # they interrupt, end the input, suspend, quit
EDITS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\\\n?\Z")  # a line that is changed or gone on with afterwards


def judge_input(running: str, data: str, where: Where) -> Verdict:
    """What speaks against writing `data` to the command `running`. Nothing where no shell or interpreter reads it."""
    try:
        programs = read(running, where.folder).simples
    except (Unreadable, RecursionError):
        return _to_shell(data, where)
    if any(simple.program in SHELLS | ELSEWHERE or not is_known(simple.program) for simple in programs):
        return _to_shell(data, where)
    talks = [each.program for each in programs if each.program in INTERPRETERS and not each.operands]
    if talks and not KEYS.fullmatch(data):
        return Verdict(asks=(f"it sends a program to `{talks[0]}`, and what a program does cannot be read off it",))
    return Verdict()


def _to_shell(data: str, where: Where) -> Verdict:
    if KEYS.fullmatch(data):
        return Verdict()
    verdict = judge(data, where)
    if verdict.blocked or (data.endswith("\n") and not EDITS.search(data.removesuffix("\n"))):
        return verdict
    return Verdict(asks=(*verdict.asks, "it types a part of a line, or keys that change one, into a shell"))
