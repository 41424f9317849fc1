"""Every rule is there for a command of the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_agent.tools.danger import code, losses, network, paths, rights
from hermes_agent.tools.danger.judging import ASKS
from hermes_agent.tools.danger.losses import BLOCKS
from hermes_agent.tools.danger.verdict import Where
from hermes_agent.tools.syntax.reading import read
from hermes_agent.tools.syntax.simple import Simple
from hermes_agent.tools.syntax.words import Unreadable

ROWS = [json.loads(line)["command"] for line in (Path(__file__).parent / "commands.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def programs() -> list[Simple]:
    found: list[Simple] = []
    for command in ROWS:
        try:
            found += read(command, "/work/project").simples
        except Unreadable:
            continue
    return found


@pytest.mark.parametrize("reason", [reason for _, reason in (*BLOCKS, *ASKS) if "owner's tree" not in reason])
def test_every_rule_is_there_for_a_command_of_the_table(reason: str, programs: list[Simple]) -> None:
    rules = [rule for rule, said in (*BLOCKS, *ASKS) if said == reason]

    assert any(rule(simple) for rule in rules for simple in programs) or reason == "it gives a tree away"


def words(text: str) -> Simple:
    (simple,) = read(text, "/w").simples
    return simple


def test_parts_of_rules_hold_by_themselves() -> None:
    assert losses.deletes_recursively(words("rm -r x"))
    assert rights.changes_the_system(words("apt install x"))
    assert not rights.changes_the_system(words("apt search x"))
    assert network.sends_away(words("scp a b:"))
    assert not network.sends_away(words("scp b:a ."))
    assert rights.starts_a_shell(words("vim -c ':!sh'"))
    assert paths.written(words("cp a b c")) == ["c"]
    assert [reason for reason, _ in code.python("import subprocess")] == [code.RUNS]


def test_a_path_that_nobody_knows_is_outside() -> None:
    here = Where(folder="/w", writable=("/w",))

    assert [here.is_outside(path) for path in paths.written(words("tee a ../b ~/c $d e/$f /dev/null"))] == [
        *(False, True, True, True, False, False)
    ]
