"""Operations on what the owner trusts: folders, for what in them speaks to the agent, and event hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_agent.app.folder_trust import Doubted, Folder, TrustedFolders
from hermes_agent.app.hooks import CONSENTS, Consents, Known, known_hooks
from hermes_agent.app.operations.access import Access, HomeSystem, Noun, OfflineSystem, place, verb
from hermes_agent.core.clock import moment
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.paths import current_folder

IN_DOUBT = "In doubt, because it changed while something from outside was in view, or a command talked to the network:"
MOST_LISTED = 20


async def show_folder(access: Access[HomeSystem], folder: str = "") -> str:
    """What in a folder speaks to the agent and is not trusted yet."""
    folders, workspace = _folders(access), _workspace(access, folder)
    news = await asyncio.to_thread(folders.news, workspace)
    doubt = _listed(await asyncio.to_thread(folders.doubted, workspace))
    if news is None:
        trusted = await asyncio.to_thread(folders.is_trusted, workspace)
        root = folders.root(workspace)
        told = f"{root} is trusted as it is." if trusted else f"{root} is too wide a folder to be trusted."
        return "\n\n".join([told, *doubt])
    texts = [f"{name}:\n{text}" for name, text in news.files.items()]
    told = f"{news.root} is not trusted{' as it is now' if news.known else ''}."
    return "\n\n".join([told, *texts, *news.findings, *doubt])


async def add_folder(access: Access[HomeSystem], folder: str = "") -> str:
    """Trust a folder with what it holds now, also what was in doubt."""
    return await _trust(access, folder, once=False)


async def add_once(access: Access[HomeSystem], folder: str = "") -> str:
    """Trust a folder until this program ends."""
    return await _trust(access, folder, once=True)


async def decline_folder(access: Access[HomeSystem], folder: str = "") -> str:
    """Ask no more about a folder while its files stay as they are."""
    workspace = _workspace(access, folder)
    await _folders(access).decline(workspace)
    return f"{_folders(access).root(workspace)} is not trusted. `/trust add` changes that."


async def list_folders(access: Access[HomeSystem]) -> Mapping[str, Folder]:
    """The trusted folders."""
    return await asyncio.to_thread(_folders(access).folders)


async def withdraw_folder(access: Access[HomeSystem], folder: str) -> str:
    """Trust a folder no more."""
    gone = await _folders(access).withdraw(_workspace(access, folder))
    return f"{folder} is no longer trusted." if gone else f"{folder} was not trusted."


async def _trust(access: Access[HomeSystem], folder: str, *, once: bool) -> str:
    folders, workspace = _folders(access), _workspace(access, folder)
    if not await asyncio.to_thread(Path(workspace).is_dir):
        raise HermesError(f"{workspace} is not a folder.")
    doubted = await folders.trust(workspace, once=once)
    if not await asyncio.to_thread(folders.is_trusted, workspace):
        raise HermesError(f"{folders.root(workspace)} is too wide a folder to be trusted.")
    told = f"{folders.root(workspace)} is trusted. Its instructions count in sessions that begin now (`/new`)."
    return "\n\n".join([told, *(f"No longer {each[0].lower()}{each[1:]}" for each in _listed(doubted))])


def _listed(doubted: Sequence[Doubted]) -> list[str]:
    """A paragraph that names the files in doubt, none where there are none."""
    lines = [f"  {' '.join(each.name.split())}, since {moment(each.since)}" for each in doubted[:MOST_LISTED]]
    lines += [f"  and {len(doubted) - MOST_LISTED} more"] if len(doubted) > MOST_LISTED else []
    return ["\n".join((IN_DOUBT, *lines))] if lines else []


def _folders(access: Access[HomeSystem]) -> TrustedFolders:
    access.check_owner("Only the owner trusts folders.")
    system = access.system
    return TrustedFolders(system.home, system.clock) if isinstance(system, OfflineSystem) else system.folders


def _workspace(access: Access[HomeSystem], folder: str) -> str:
    return str(Path(folder).expanduser().resolve()) if folder else access.folder or str(current_folder())


TRUST = Noun(
    name="trust",
    offline=True,
    short_help="Choose the folders whose files you trust.",
    help="Choose the folders whose files you trust. What is learned elsewhere waits for you.",
    verbs=(
        verb("show", "Show what in a folder speaks to the agent.", show_folder, place("folder", default="")),
        verb(
            "add",
            "Trust a folder with what it holds now, and name what was in doubt.",
            add_folder,
            place("folder", default=""),
        ),
        verb("once", "Trust a folder until this program ends.", add_once, place("folder", default="")),
        verb("decline", "Do not ask about a folder as it is.", decline_folder, place("folder", default="")),
        verb("list", "List the trusted folders.", list_folders, text="\n".join, nothing="No folder is trusted."),
        verb("remove", "Trust a folder no more.", withdraw_folder, place("folder")),
    ),
)


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


def _hook_lines(found: Sequence[Known]) -> str:
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
            text=_hook_lines,
            nothing="There are no hooks. docs/hooks.md shows one.",
        ),
        verb("allow", "Allow a hook with its present content.", allow_hook, place("name")),
        verb("revoke", "Revoke a hook's consent.", revoke_hook, place("name")),
    ),
)
