"""Operations on event hooks: list them, and choose which may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_agent.app.hooks import CONSENTS, Consents, Known, known_hooks
from hermes_agent.app.operations.access import Noun, place, verb
from hermes_agent.core.errors import ConfigError

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem


async def list_hooks(access: Access[HomeSystem]) -> list[Known]:
    """The hooks of the settings, and whether each may run. Owner only."""
    access.check_owner("Only the owner has hooks.")
    return known_hooks(access.system.settings.hooks, access.system.home.root)


async def find_hook(access: Access[HomeSystem], name: str) -> Known:
    """The hook of that name. Raises `ConfigError`."""
    known = {each.name: each for each in await list_hooks(access)}
    if name not in known:
        raise ConfigError(f"There is no hook `{name}`. There are: {', '.join(known) or 'none'}.")
    return known[name]


async def allow_hook(access: Access[HomeSystem], name: str) -> str:
    """Allow a hook with its present content. Returns what it runs."""
    found = await find_hook(access, name)
    if found.problem:
        raise ConfigError(found.problem)
    Consents(access.system.home.root / CONSENTS).give(name, found.mark)
    return f"{name} may run: {found.hook.command or found.hook.python}"


async def revoke_hook(access: Access[HomeSystem], name: str) -> str:
    """Revoke a hook's consent. Returns whether there was one."""
    access.check_owner("Only the owner has hooks.")
    taken = Consents(access.system.home.root / CONSENTS).take_back(name)
    return f"{name} is no longer allowed." if taken else f"{name} was not allowed."


def _lines(found: Sequence[Known]) -> str:
    return "\n".join(
        f"{each.name}  on {', '.join(each.hook.on)}  {each.hook.command or each.hook.python}  "
        + (each.problem or ("allowed" if each.allowed else "waits for your consent"))
        for each in found
    )


HOOKS = Noun(
    name="hooks",
    offline=True,
    short_help="List hooks, and choose which may run.",
    help="Your programs that run on events: section `hooks` of config.yaml. A hook runs only with your consent, and a "
    "changed one needs it again.",
    verbs=(
        verb(
            "list",
            "List the hooks and their consent.",
            list_hooks,
            text=_lines,
            nothing="There are no hooks. docs/hooks.md shows one.",
        ),
        verb("allow", "Allow a hook with its present content.", allow_hook, place("name")),
        verb("revoke", "Revoke a hook's consent.", revoke_hook, place("name")),
    ),
)
