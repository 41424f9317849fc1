"""`hermes memory`: read, edit and take back what is noted."""

from __future__ import annotations

from functools import partial

import click

from hermes_agent.app.operations.memory import FACTS, NOTES, put_note
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.verbs import group_of
from hermes_agent.core.errors import HermesError
from hermes_agent.host.files import read_small, write_private
from hermes_agent.memory.whose import Target

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
    click.edit(filename=str(draft))
    after = read_small(draft) or b""
    try:
        version, found = ask(surface, partial(put_note, target=wanted, after=after, before=before))
    except HermesError as error:
        raise click.ClickException(f"{error} Your text is kept in {draft}.") from error
    draft.unlink()
    say(f"{found.file}: version {version}." if version else f"{found.file} is as it was.")
    if found.size > found.limit:
        remark(f"{found.file} has {found.size:,} characters; the agent is shown {found.limit:,}.")
