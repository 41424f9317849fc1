"""Operations on trusted folders: what in a folder speaks to the agent, trust it, list, and withdraw."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.app.folder_trust import Doubted, Folder, TrustedFolders
from hermes_agent.app.operations.access import Access, Noun, OfflineSystem, place, verb
from hermes_agent.core.clock import moment
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import current_folder

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import HomeSystem

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
