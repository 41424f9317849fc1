"""Operations on trusted folders: what in a folder speaks to the agent, trust it, list, and withdraw."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.app.folder_trust import Folder, News, TrustedFolders
from hermes_agent.app.operations.access import Access, OfflineSystem
from hermes_agent.app.operations.verbs import Noun, place, verb
from hermes_agent.core.errors import HermesError
from hermes_agent.core.plural import plural
from hermes_agent.host.paths import current_folder

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import HomeSystem

ASKED = (
    "Do you trust the files of {root}? {what} `/trust` shows it; `/trust add` trusts the folder, `/trust once` until "
    "you leave. Until then what is learned here waits for you."
)
NOTHING = "Nothing in it speaks to the agent."


def asked(news: News) -> str:
    """The question about a folder, in one line."""
    if not news.files:
        return ASKED.format(root=news.root, what=NOTHING)
    names, more = list(news.files)[:3], len(news.files) - 3
    others = f" and {plural(more, 'other')}" if more > 0 else ""
    told = f"{', '.join(names)}{others} {'changed' if news.known else 'speaks to the agent'}."
    return ASKED.format(root=news.root, what=" ".join((told, *news.findings)))


async def show_folder(access: Access[HomeSystem], folder: str = "") -> str:
    """What in a folder speaks to the agent and is not trusted yet."""
    folders, workspace = _folders(access), _workspace(access, folder)
    news = await asyncio.to_thread(folders.news, workspace)
    if news is None:
        trusted = await asyncio.to_thread(folders.is_trusted, workspace)
        root = folders.root(workspace)
        return f"{root} is trusted as it is." if trusted else f"{root} is too wide a folder to be trusted."
    texts = [f"{name}:\n{text}" for name, text in news.files.items()]
    return "\n\n".join([f"{news.root} is not trusted{' as it is now' if news.known else ''}.", *texts, *news.findings])


async def add_folder(access: Access[HomeSystem], folder: str = "") -> str:
    """Trust a folder with what it holds now."""
    return await _trust(access, folder, once=False)


async def add_once(access: Access[HomeSystem], folder: str = "") -> str:
    """Trust a folder until this program ends."""
    return await _trust(access, folder, once=True)


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
    await folders.trust(workspace, once=once)
    if not await asyncio.to_thread(folders.is_trusted, workspace):
        raise HermesError(f"{folders.root(workspace)} is too wide a folder to be trusted.")
    return f"{folders.root(workspace)} is trusted. Its instructions count from the next session on (`/new`)."


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
        verb("add", "Trust a folder with what it holds now.", add_folder, place("folder", default="")),
        verb("once", "Trust a folder until this program ends.", add_once, place("folder", default="")),
        verb("list", "List the trusted folders.", list_folders, text="\n".join, nothing="No folder is trusted."),
        verb("withdraw", "Trust a folder no more.", withdraw_folder, place("folder")),
    ),
)
