"""Running `hermes` in tests: in this process with click's runner, or as the real program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner, Result

from hermes_agent.cli.group import hermes
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from tests.measured import measured, path_of

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from hermes_agent.cli.main import main; sys.exit(main())"


def every_leaf(command: click.Command = hermes, path: str = "") -> list[tuple[str, click.Command]]:
    """Every command that has none below it and is not hidden, by its words."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    inner = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [
        leaf for name, each in inner if each and not each.hidden for leaf in every_leaf(each, f"{path} {name}".strip())
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str


def typed(home: Path, *words: str, stdin: str = "", schema: type | None = None, **variables: str) -> Said:
    """Run a subcommand in this process. Raises what it raises, so that a test sees the error itself."""
    surface = Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home), **variables})
    if schema is not None:
        surface.__dict__["schema"] = schema
    result: Result = CliRunner().invoke(hermes, list(words), input=stdin, obj=surface, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    code = result.return_value if isinstance(result.return_value, int) else 0
    return Said(code=code, out=result.stdout, err=result.stderr)


def program(*words: str, home: Path, stdin: bytes | None = None, variables: Mapping[str, str] | None = None) -> Said:
    """Run the real program in a process of its own, standard input empty unless given."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env={
            "PYTHONPATH": path_of(ROOT / "src"),
            "HERMES_HOME": str(home),
            "PATH": "/usr/bin:/bin",
            **measured(),
            **(variables or {}),
        },
        **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
        capture_output=True,
        timeout=25,
        check=False,
    )
    return Said(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())
