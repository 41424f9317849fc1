"""Subcommands built from operations (`Noun`, `Verb`): `hermes agents`, `curator` and others, `memory`, `hooks`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import msgspec

from hermes_agent.app.hooks import EVENTS, run_hook
from hermes_agent.app.operations.access import Argument, Kind, Noun, Verb
from hermes_agent.app.operations.memory import FACTS, NOTES, put_note
from hermes_agent.app.operations.trust import HOOKS, find_hook
from hermes_agent.cli.operation import ask, ask_system
from hermes_agent.cli.output import remark, say, say_json, show
from hermes_agent.cli.picker_choices import edit as edit_in_editor
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.table import SUMMARIES
from hermes_agent.cli.time_format import Since
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.paths import read_small, write_private
from hermes_agent.memory.settings import Target
from hermes_agent.sandbox.jail import scrubbed

KINDS: dict[Kind, click.ParamType[Any]] = {
    Kind.TEXT: click.STRING,
    Kind.NUMBER: click.INT,
    Kind.COUNT: click.IntRange(1),
    Kind.SINCE: Since(),
    Kind.SKILL: click.STRING,
    Kind.SWITCH: click.BOOL,
    Kind.WORDS: click.STRING,
    Kind.NAMES: click.STRING,
}


def command_of(found: Noun | Verb) -> click.Command:
    """The click command of a noun, or of a verb that stands alone and needs no runs."""
    if isinstance(found, Noun):
        return group_of(found)
    command = _command(found, ask)
    command.short_help = SUMMARIES[found.name]
    return command


def group_of(noun: Noun) -> click.Group:
    """The click group of a noun."""
    commands = [_command(verb, ask if noun.offline else ask_system) for verb in noun.verbs]
    return click.Group(noun.name.split()[-1], commands=commands, short_help=noun.short_help, help=noun.help)


def _command(verb: Verb, ask_for: Callable[..., Any]) -> click.Command:
    @pass_surface
    def act(surface: Surface, /, **given: Any) -> None:  # noqa: ANN401  click hands each by its name
        show(ask_for(surface, partial(verb.act, **given)), verb.text, nothing=verb.nothing)

    params: list[click.Parameter] = [_parameter(each) for each in verb.arguments]
    return click.Command(verb.name, callback=act, params=params, help=verb.help)


def _parameter(argument: Argument) -> click.Parameter:
    kind = KINDS[argument.kind]
    metavar = argument.metavar or None
    if argument.flag:
        names, is_flag = [argument.name, *argument.flag.split()], argument.kind is Kind.SWITCH
        return click.Option(
            names,
            type=kind,
            metavar=metavar,
            is_flag=is_flag,
            default=argument.default,
            show_default=argument.kind is Kind.COUNT,
            help=argument.help,
        )
    needed = argument.default is None
    shown = metavar if metavar is None or needed else f"[{metavar}]"
    if argument.kind is Kind.NAMES:
        return click.Argument([argument.name], type=kind, metavar=metavar, required=needed, nargs=-1)
    return click.Argument([argument.name], type=kind, metavar=shown, required=needed, default=argument.default)


memory = group_of(NOTES)
memory.add_command(group_of(FACTS))


@memory.command()
@click.argument("target", type=click.Choice([target.value for target in Target]), default=Target.MEMORY.value)
@pass_surface
def edit(surface: Surface, target: str) -> None:
    """Open MEMORY.md (or USER.md) in $EDITOR; the change is kept as yours. The files may also be edited directly."""
    wanted = Target(target)
    path, draft = surface.home.ensure().memories / wanted.file, surface.home.cache / f"edit.{wanted.file}"
    before = read_small(path)
    write_private(draft, before or b"")
    edit_in_editor(file=draft)
    after = read_small(draft) or b""
    try:
        version, found = ask(surface, partial(put_note, target=wanted, after=after, before=before))
    except HermesError as error:
        raise click.ClickException(f"{error} Your text is kept in {draft}.") from error
    draft.unlink()
    say(f"{found.file}: version {version}." if version else f"{found.file} is as it was.")
    if found.size > found.limit:
        remark(f"{found.file} has {found.size:,} characters; the agent is shown {found.limit:,}.")


hooks = group_of(HOOKS)


@hooks.command()
@click.argument("name")
@click.argument("event", type=click.Choice(sorted(EVENTS)))
@pass_surface
def test(surface: Surface, name: str, event: str) -> None:
    """Run a hook that is allowed, with the JSON on standard input as the event's facts, and show its answer."""
    found = ask(surface, partial(find_hook, name=name))
    if not found.allowed:
        raise ConfigError(
            found.problem or f"{name} is not allowed with its present content: `hermes hooks allow {name}`."
        )
    facts = msgspec.json.decode(sys.stdin.buffer.read() or b"{}", type=dict[str, object])
    variables = {**scrubbed(surface.variables), "HERMES_HOME": str(surface.home.root)}
    say_json(asyncio.run(run_hook(found.hook, {"event": event, **facts}, surface.home.root, variables)))
