"""Click group of `hermes`: a subcommand's module is imported when used; the list of subcommands needs none of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import click

from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import OPTIONS, RESULT, Invocation, Option
from hermes_agent.cli.table import BELOW_AGENT, CHILDS, COMMANDS, NO_HOME, OPEN, SUMMARIES, TAPED
from hermes_agent.core.errors import Refused
from hermes_agent.host.late import late
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.paths import find_home
from hermes_agent.version import VERSION

LONGEST_SENTENCE = 200
SURFACE = "hermes_agent.cli.surface:Surface"


class Subcommands(click.Group):
    """Click group whose subcommands come from `cli/table.py`; each is imported when it is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = late(COMMANDS[cmd_name])
        _uncut(command)
        if late(BELOW_AGENT)():
            _close(command, "", cmd_name, has_home=os.access(find_home().root, os.R_OK))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            near = nearest_key(args[0], COMMANDS)
            meant = f"Did you mean `hermes {near}`?" if near else "`hermes --help` lists them."
            ctx.fail(f"There is no command `{args[0]}`. {meant} A question goes behind -z.")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in COMMANDS])


def _uncut(command: click.Command) -> None:
    """Show each command's whole first sentence in help lists, which click would truncate."""
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        each.short_help = each.get_short_help_str(LONGEST_SENTENCE)
        _uncut(each)


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


def _parameter(option: Option) -> click.Option:
    names = [option.field, *(flag for flag in option.flags if flag != RESULT)]
    if option.metavar:
        return click.Option(names, metavar=option.metavar, multiple=option.repeats, help=option.help)
    return click.Option(names, is_flag=True, help=option.help)


def _show_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"hermes {VERSION}")
        context.exit()


hermes = Subcommands(
    name="hermes",
    callback=_options_given,
    params=[
        *map(_parameter, OPTIONS),
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Hermes, an agent that works with your files and shell. Without a command: the chat.",
)


def run(arguments: Sequence[str]) -> int:
    """Run a subcommand and return the exit code. Raises `HermesError`."""
    try:
        words = ["--json-result" if word == RESULT else word for word in arguments]
        result = hermes.main(words, prog_name="hermes", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("Stopped.", err=True)
        return Exit.STOPPED
    return result if isinstance(result, int) else Exit.OK
