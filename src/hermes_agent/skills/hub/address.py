"""Where a repository is: what a person may type, and the one protocol that git may speak to it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.skills.hub.errors import HubError

GITHUB = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
SCP = re.compile(r"([\w.-]+@)?([\w][\w.-]*):(?!/)([\w./~-]+)", re.ASCII)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST = 500
FORMS = "`owner/repository` on GitHub, an https:// or ssh address, or the path of a folder that begins with / ~ or ."


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`url` as git gets it; `protocol` is the only one that git may use for it, so that nothing that the other side
    says leads to the files of this machine."""

    url: str
    protocol: str
    name: str


def address_of(text: str) -> Address:
    """The repository that a text names. Raises `HubError` with the forms that there are."""
    text = text.strip()
    if not text or len(text) > LONGEST or text.startswith("-") or any(not each.isprintable() for each in text):
        raise HubError(f"`{text[:80]}` is not a repository: give {FORMS}.")
    if text.startswith(("/", "./", "../", "~", "file:")) or text in (".", ".."):
        return _local(text)
    if "://" in text:
        return _by_url(text)
    if GITHUB.fullmatch(text):
        return Address(url=f"https://github.com/{text.removesuffix('.git')}", protocol="https", name=_name(text))
    if found := SCP.fullmatch(text):
        return Address(url=text, protocol="ssh", name=_name(found[3]))
    raise HubError(f"`{text[:80]}` is not a repository: give {FORMS}.")


def _by_url(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError as error:
        raise HubError(f"`{text[:80]}` is not an address ({error}).") from error
    if parts.password or (parts.username and parts.scheme != "ssh"):
        raise HubError("The address holds a name or a key, which would be written down: use ssh, or ~/.netrc.")
    plain = parts.scheme == "http" and host in LOOPBACK
    if parts.scheme not in ("https", "ssh") and not plain:
        raise HubError(f"`{parts.scheme}` is not supported for repositories: give {FORMS}.")
    if not host or host.startswith("-") or not parts.path.strip("/") or " " in text:
        raise HubError(f"`{text[:80]}` names no repository: give {FORMS}.")
    return Address(url=text, protocol=parts.scheme, name=_name(parts.path))


def _local(text: str) -> Address:
    try:
        path = Path(text.removeprefix("file://")).expanduser().absolute()
    except RuntimeError as error:
        raise HubError(f"`{text}`: no such home folder.") from error
    if not path.is_dir():
        raise HubError(f"There is no folder {path}.")
    return Address(url=str(path), protocol="file", name=_plain(path.name.removesuffix(".git")) or "local")


def _name(path: str) -> str:
    """The last two words of a path."""
    return "/".join(filter(None, map(_plain, path.removesuffix("/").removesuffix(".git").split("/")[-2:]))) or "tap"


def _plain(word: str) -> str:
    return re.sub(r"[^\w.-]", "", word, flags=re.ASCII).strip(".-")
