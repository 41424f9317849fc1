"""Click group of `hermes`: a subcommand's module is imported when used; the list of subcommands needs none of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from hermes_agent.cli.examples import epilog_of
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import OPTIONS, RESULT, Invocation, Option
from hermes_agent.cli.output import answering, remark
from hermes_agent.cli.table import (
    BELOW_AGENT,
    CHILDS,
    COMMANDS,
    ELSEWHERE,
    GROUPS,
    NO_HOME,
    OPEN,
    SUMMARIES,
    TAPED,
)
from hermes_agent.core.errors import Refused
from hermes_agent.host.late import late
from hermes_agent.host.paths import find_home
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

UNASKED = (
    "\nStopped: there is no terminal to ask you at. `-y` says yes where a command has it; a value comes from standard "
    "input."
)
COUNT = ("valid integer range", "whole number")
"""What click says of a count, in plain words."""
NARROWEST, WIDEST = 30, 100
"""Columns of the help."""
NAME = 11
"""Columns of a command's name in the help."""
CLOSE = 0.75
"""How like a command a word is that was probably mistyped: a far-off guess misleads."""
DRESS = "hermes_agent.cli.dressing:dress"
COMMAND_OF = "hermes_agent.cli.commands.verbs:command_of"
COMPLETED = "hermes_agent.cli.completing:completed"
SURFACE = "hermes_agent.cli.surface:Surface"


class Subcommands(click.Group):
    """Click group whose subcommands come from `cli/table.py`; each is imported when it is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = late(COMMANDS[cmd_name])
        command: click.Command = found if isinstance(found, click.Command) else late(COMMAND_OF)(found)
        late(DRESS)(command, cmd_name)
        if late(BELOW_AGENT)():
            _close(command, "", cmd_name, has_home=os.access(find_home().root, os.R_OK))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            near = get_close_matches(args[0], COMMANDS, n=1, cutoff=CLOSE)
            meant = f"Did you mean `hermes {near[0]}`?" if near else "`hermes --help` lists them."
            meant += " A question goes behind -z."
            ctx.fail(f"There is no command `{args[0]}`. {ELSEWHERE.get(args[0].lower(), meant)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with answering():
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{NAME}}", SUMMARIES[name]) for name in names.split()])
        click.Command.format_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.epilog = epilog_of("")
        super().format_epilog(ctx, formatter)


def _close(command: click.Command, group: str, name: str, *, has_home: bool) -> None:
    """Have each subcommand refuse to run that is the owner's, or any without a home."""
    path = f"{group} {name}".strip()
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            _close(each, path, inner, has_home=has_home)
    elif not has_home or name not in OPEN.get(group, "").split():
        command.callback = partial(_refuse, f"`hermes {path}` is the owner's: {CHILDS}" if has_home else NO_HOME)


def _refuse(why: str, **_given: object) -> None:
    raise Refused(why)


@click.pass_context
def _options_given(context: click.Context, /, **given: str | bool | tuple[str, ...] | None) -> None:
    if context.obj is None:
        values = {name: value for name, value in given.items() if value is not None}
        invocation = Invocation(**values)  # type: ignore[arg-type]  # the table says which is which
        if invocation.is_taped and context.invoked_subcommand not in TAPED:
            taped = ", ".join(f"`hermes {name}`" for name in TAPED if name != "chat")
            context.fail(
                f"Nothing of `hermes {context.invoked_subcommand}` is recorded or replayed: --record and --replay are"
                f" for the chat, -z, {taped}."
            )
        context.obj = late(SURFACE)(invocation=invocation)


def _completed(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    found: list[CompletionItem] = late(COMPLETED)(context, parameter, start)
    return found


def _parameter(option: Option) -> click.Option:
    names = [option.field, *(flag for flag in option.flags if flag != RESULT)]
    if option.metavar:
        return click.Option(
            names, metavar=option.metavar, multiple=option.repeats, help=option.help, shell_complete=_completed
        )
    return click.Option(names, is_flag=True, help=option.help)


hermes = Subcommands(
    name="hermes",
    callback=_options_given,
    params=[*map(_parameter, OPTIONS)],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
    help="Hermes, an agent that works with your files and shell. Without a command: the chat.",
)
click.version_option(VERSION, "-V", "--version", message="hermes %(version)s")(hermes)


def run(arguments: Sequence[str]) -> int:
    """Run a subcommand and return the exit code. Raises `HermesError`."""
    try:
        words = ["--json-result" if word == RESULT else word for word in arguments]
        # Click itself would not go below 50 columns.
        columns = max(NARROWEST, min(get_terminal_size().columns, WIDEST)) - 2
        result = hermes.main(words, prog_name="hermes", standalone_mode=False, terminal_width=columns)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        way = f" `{context.command_path} --help` shows the way." if context is not None and context.parent else ""
        remark(f"{error.format_message().replace(*COUNT)}{way}")
        return error.exit_code
    except click.Abort:
        remark("Stopped." if sys.stdin.isatty() else UNASKED)
        return Exit.STOPPED
    return result if isinstance(result, int) else Exit.OK
