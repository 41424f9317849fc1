"""What a command of the agent may do with `hermes`: read and run work of its own; it changes nothing of the owner's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from hermes_agent.cli.group import hermes
from hermes_agent.cli.table import CHILDS, COMMANDS, NO_HOME, OPEN
from tests.cli.shell import PROGRAM, ROOT
from tests.measured import path_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def below(home: Path, *words: str, way: str = "", program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """Run a program as a command of the agent does: from a shell that has the mark, by this `way`."""
    return subprocess.run(
        ["sh", "-c", f'{way} "$@"; exit $?', "sh", sys.executable, "-c", program, *words],
        env={
            "PYTHONPATH": path_of(ROOT / "src"),
            "HERMES_HOME": str(home),
            "HERMES_EXEC": "/records/1/",
            "PATH": "/usr/bin:/bin",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=25,
        check=False,
    )


WAYS = ("", "env -u HERMES_EXEC", "env -i HERMES_HOME=$HERMES_HOME PYTHONPATH=$PYTHONPATH", "setsid -w", "nohup")


@pytest.mark.parametrize("way", WAYS)
def test_a_command_of_the_agent_changes_no_setting_however_it_is_started(home: Path, way: str) -> None:
    done = below(home, "config", "set", "approvals.mode", "off", way=way)

    assert (done.returncode, CHILDS in done.stderr) == (1, True)
    assert not (home / "config.yaml").exists()


def leaves(command: click.Command, path: str) -> list[str]:
    if not isinstance(command, click.Group):
        return [path]
    return [leaf for name, each in command.commands.items() for leaf in leaves(each, f"{path} {name}")]


def all_leaves() -> list[str]:
    context = click.Context(hermes)
    return [leaf for name in COMMANDS for leaf in leaves(hermes.get_command(context, name), name)]


PENS = ("approve", "undo", "set", "allow", "pair", "trust", "delete", "revert", "login", "send", "run", "test", "prune")


def test_what_is_open_exists_and_nothing_in_it_has_the_name_of_a_change() -> None:
    opened = {f"{group} {name}".strip() for group, names in OPEN.items() for name in names.split()}

    assert opened <= set(all_leaves())
    assert [each for each in opened if each.split()[-1] in PENS] == []


def test_every_subcommand_that_is_not_open_refuses_below_the_agent(home: Path) -> None:
    every = (
        "import click; from hermes_agent.cli.group import hermes; from hermes_agent.cli.table import COMMANDS\n"
        "def walk(c, p):\n"
        "    for n, e in getattr(c, 'commands', {}).items(): walk(e, f'{p} {n}')\n"
        "    if not hasattr(c, 'commands'):\n"
        "        print(p if getattr(c.callback, 'func', None) else '')\n"
        "for name in COMMANDS: walk(hermes.get_command(click.Context(hermes), name), name)\n"
    )
    refusing = set(below(home, program=every).stdout.splitlines()) - {""}
    opened = {f"{group} {name}".strip() for group, names in OPEN.items() for name in names.split()}

    assert refusing == set(all_leaves()) - opened
    assert {
        "learn approve",
        "pairing approve",
        "api key",
        "secrets set",
        "skills trust",
        "model set",
        "trust add",
        "trust decline",
    } <= refusing


@pytest.mark.parametrize("words", [("sessions", "list"), ("config", "get", "approvals.mode"), ("skills", "list")])
def test_it_may_read(home: Path, words: tuple[str, ...]) -> None:
    assert below(home, *words).returncode == 0


@pytest.mark.parametrize(
    "words", [("-z", "x", "--yolo"), ("-z", "x", "--allow", "rm *"), ("chat",), ("-z", "x", "-r", "mine")]
)
def test_work_of_its_own_is_not_the_owners(home: Path, words: tuple[str, ...]) -> None:
    (home / "config.yaml").write_text("model: {default: demo/demo}\n")

    done = below(home, *words)

    assert done.returncode != 0
    assert "owner's" in done.stderr or "no session" in done.stderr.lower()


def test_what_it_says_is_not_the_owners_word(home: Path) -> None:
    (home / "config.yaml").write_text("model: {default: demo/demo}\n")

    said = below(home, "-z", "hello", "--json", way="env -u HERMES_EXEC").stdout

    assert '"origin":"member"' in said
    assert '"origin":"owner"' not in said


def test_the_library_below_the_agent_is_not_the_owner_either(home: Path) -> None:
    program = (
        "import asyncio\n"
        "from hermes_agent.app.opening import open_system; from hermes_agent.host.paths import find_home\n"
        "from hermes_agent.app.operations.access import Access\n"
        "from hermes_agent.app.operations.learning import learned\n"
        "async def act():\n"
        "    async with open_system(find_home()) as system: learned(Access(system=system, who=system.owner))\n"
        "asyncio.run(act())\n"
    )

    assert "Only the owner may see and change lessons" in below(home, program=program).stderr


def test_without_a_home_it_says_so_in_one_sentence(tmp_path: Path) -> None:
    for words in (("sessions", "list"), ("-z", "hello"), ("config", "set", "a", "b")):
        done = below(tmp_path / "none", *words)

        assert (done.returncode, done.stderr) == (1, f"{NO_HOME}\n")
    assert not (tmp_path / "none").exists()
