"""Runs git on a bare repository: nothing is checked out and nothing from the repository is executed."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import PRIVATE_FOLDER
from hermes_agent.host.process import Finished, run
from hermes_agent.host.tasks import spawn


class HubError(HermesError):
    """A tap, repository or skill that cannot be used; nothing was changed."""


class Unreachable(HubError):
    """A repository that does not answer or no longer exists."""


GITHUB = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
SCP = re.compile(r"([\w.-]+@)?([\w][\w.-]*):(?!/)([\w./~-]+)", re.ASCII)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST = 500
FORMS = "`owner/repository` on GitHub, an https:// or ssh address, or the path of a folder that begins with / ~ or ."


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A repository address. `url` is what git gets; `protocol` is the only one that git may use, so that nothing the
    server says can lead to local files."""

    url: str
    protocol: str
    name: str


def address_of(text: str) -> Address:
    """Parses the address of a repository. Raises `HubError` with the accepted forms."""
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


SECONDS = 30.0
MOST_SAID = 32 << 20
GLANCE = 0.25
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REF = re.compile(r"[\w][\w./+-]{0,199}")
SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.autocrlf=false",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "http.followRedirects=initial",
    "advice.detachedHead=false",
)
PASSED_ON = (
    *("HOME", "PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "GIT_SSL_CAINFO"),
    *("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """A state of a repository: the commit, and the full name of the ref that pointed at it (empty: the commit was
    named)."""

    commit: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A file in a commit; `kind` is git's mode, `size` in bytes (0 for what is no file)."""

    path: str
    kind: str
    oid: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a fetch: seconds, bytes received, and bytes of the file list."""

    seconds: float = 300.0
    fetched: int = 512 << 20
    listed: int = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A fetched repository in `folder`. `variables` is this program's environment, of which git gets a few names;
    `tell` is called with the number of bytes received."""

    address: Address
    folder: Path
    variables: Mapping[str, str]
    limits: Limits = Limits()
    tell: Callable[[int], None] = lambda _: None

    async def fetch(self, ref: str = "") -> At:
        """Fetch a branch, a tag or a commit (empty: the main branch) without history.

        Raises `Unreachable` where nobody answers, `HubError` for an unknown name or too many bytes.
        """
        await asyncio.to_thread(self._make)
        at = await self._meant(ref)
        words = ["fetch", "--quiet", "--depth=1", "--no-tags", "--force", "--no-auto-gc", "--", self.address.url]
        kept = f"refs/hub/{at.commit}"
        await self._arriving([*words, f"{at.ref or at.commit}:{kept}"])
        found = await self.run("rev-parse", "--verify", "--quiet", f"{kept}^{{commit}}")
        return At(commit=found.decode().strip(), ref=at.ref)

    async def tree(self, commit: str, path: str = "") -> list[TreeEntry]:
        """Every file below a path. Raises `HubError` where the commit is missing or has too many."""
        words = ["ls-tree", "-r", "-z", "--long", "--full-tree", commit, *(("--", path) if path else ())]
        ended = await self._git(words, most=self.limits.listed)
        if ended.cut:
            raise HubError(f"{self.address.url} lists more files than are read.")
        if ended.code != 0:
            raise HubError(f"{self.address.url} does not hold {commit[:12]} {path}: {_said(ended.err)}")
        return [_entry(line) for line in ended.out.split(b"\0") if line]

    async def contents(self, oids: Sequence[str]) -> list[bytes]:
        """The contents of these objects in order. The caller has checked their sizes."""
        wanted = "".join(f"{oid}\n" for oid in oids).encode()
        return _batch(await self.run("cat-file", "--batch", data=wanted, most=self.limits.fetched), oids)

    async def run(
        self,
        *words: str,
        data: bytes | None = None,
        more: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        most: int = MOST_SAID,
    ) -> bytes:
        """What git says, to some input, with `more` in its environment. Raises `HubError` with its words."""
        ended = await self._git(words, data=data, more=more, seconds=seconds, most=most)
        if ended.code != 0:
            raise HubError(f"git {words[0]} failed: {_said(ended.err) or ended.code}")
        return ended.out

    async def _meant(self, ref: str) -> At:
        """What a name stands for on the other side."""
        ref = "" if ref == "HEAD" else ref
        if COMMIT.fullmatch(ref):
            return At(commit=ref, ref="")
        if ref and (not REF.fullmatch(ref) or ".." in ref):
            raise HubError(f"`{ref[:80]}` is not a branch, tag or commit.")
        names = (ref,) if ref.startswith("refs/") else (f"refs/tags/{ref}", f"refs/heads/{ref}")
        ended = await self._git(
            ["ls-remote", "--symref", "--", self.address.url, *(names if ref else ("HEAD",))],
            seconds=self.limits.seconds,
        )
        if ended.code != 0:
            raise Unreachable(f"{self.address.url} cannot be reached: {_said(ended.err) or 'no answer'}")
        lines = [line.split("\t") for line in ended.out.decode("utf-8", "replace").splitlines()]
        meant = {name: what for what, name in (line for line in lines if len(line) == 2)}
        if not ref:
            head = next((what.removeprefix("ref: ") for what, name in lines if what.startswith("ref: ")), "HEAD")
            commit = next((what for what, name in lines if name == "HEAD" and COMMIT.fullmatch(what)), "")
            if not commit:
                raise HubError(f"{self.address.url} is empty.")
            return At(commit=commit, ref=head)
        for name in names:
            if name in meant:
                return At(commit=meant[name], ref=name)
        raise HubError(f"{self.address.url} has no branch or tag `{ref.removeprefix('refs/heads/')}`.")

    async def _arriving(self, words: Sequence[str]) -> None:
        before = await asyncio.to_thread(_bytes_in, self.folder)
        work = spawn(self._git(words, seconds=self.limits.seconds), name="hub: fetch")
        try:
            while not (await asyncio.wait({work}, timeout=GLANCE))[0]:
                size = await asyncio.to_thread(_bytes_in, self.folder) - before
                self.tell(size)
                if size > self.limits.fetched:
                    raise HubError(f"{self.address.url} has more than {self.limits.fetched >> 20} MB at one commit.")
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        ended = work.result()
        if ended.code != 0:
            raise Unreachable(f"{self.address.url} cannot be fetched: {_said(ended.err) or 'no answer'}")

    async def _git(
        self,
        words: Sequence[str],
        *,
        data: bytes | None = None,
        seconds: float = SECONDS,
        most: int = 1 << 20,
        more: Mapping[str, str] | None = None,
    ) -> Finished:
        try:
            env = {**self.environment(), **(more or {})}
            command = [*self.words(), *words]
            return await run(command, env=env, data=data, cwd=str(self.folder), seconds=seconds, most=most)
        except TimeoutError as error:
            raise Unreachable(f"{self.address.url}: git {words[0]} took longer than {seconds:.0f} s.") from error
        except OSError as error:
            raise HubError(f"git cannot be started: {error.strerror}.") from error

    def words(self) -> list[str]:
        """The command line of git."""
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        return [found_git(self.variables), f"--git-dir={self.folder}", *settings]

    def environment(self) -> dict[str, str]:
        """The environment of git."""
        passed = {name: self.variables[name] for name in PASSED_ON if name in self.variables}
        return {
            "PATH": os.defpath,
            **passed,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "/bin/false",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_ALLOW_PROTOCOL": self.address.protocol,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "LC_ALL": "C.UTF-8",
        }

    def _make(self) -> None:
        """The bare repository, without templates, and so without hooks."""
        if (self.folder / "HEAD").is_file():
            return
        for name in ("objects", "refs"):
            (self.folder / name).mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        (self.folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        (self.folder / "HEAD").write_text("ref: refs/heads/none\n")


def found_git(variables: Mapping[str, str]) -> str:
    """The path of the git command. Raises `HubError`."""
    found = shutil.which("git", path=variables.get("PATH", os.defpath))
    if found is None:
        raise HubError("This needs git, which is not installed.")
    return found


def _entry(line: bytes) -> TreeEntry:
    head, _, path = line.partition(b"\t")
    kind, _, oid, size = head.decode().split()
    try:
        return TreeEntry(path=path.decode(), kind=kind, oid=oid, size=int(size) if size.isdigit() else 0)
    except UnicodeDecodeError as error:
        raise HubError(f"A file has a name that is not text: {path!r}.") from error


def _batch(out: bytes, oids: Sequence[str]) -> list[bytes]:
    found, position = [], 0
    for oid in oids:
        end = out.find(b"\n", position)
        head = out[position:end].split()
        if len(head) != 3:
            raise HubError(f"The object {oid[:12]} is not in the repository.")
        size = int(head[2])
        found.append(out[end + 1 : end + 1 + size])
        position = end + size + 2
    return found


def _bytes_in(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder / "objects"):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118  many, and only to add up
            except OSError:  # it was moved meanwhile
                continue
    return total


def _said(err: bytes) -> str:
    """The last words of git that say something."""
    lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return (fatal or lines or [""])[0][:300]
