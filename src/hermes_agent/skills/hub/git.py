"""The git command, on a bare repository of ours: nothing is checked out, nothing of the repository's is run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.files import PRIVATE_FOLDER
from hermes_agent.host.process import Finished, open_piped, run
from hermes_agent.host.tasks import spawn
from hermes_agent.skills.hub.address import Address
from hermes_agent.skills.hub.errors import HubError, Unreachable

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
    """A state of a repository: the commit, and the full name of what pointed at it (empty: it was named itself)."""

    commit: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A file as a commit lists it; `kind` is git's mode, `size` in bytes (0 where it is no file)."""

    path: str
    kind: str
    oid: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a repository is taken: seconds and bytes until it has arrived, bytes of the list of its files."""

    seconds: float = 300.0
    fetched: int = 512 << 20
    listed: int = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What was fetched from an address, in `folder`. `variables` is the environment of this program, of which git gets
    a few names; `tell` is told how many bytes have arrived."""

    address: Address
    folder: Path
    variables: Mapping[str, str]
    limits: Limits = Limits()
    tell: Callable[[int], None] = lambda _: None

    async def fetch(self, ref: str = "") -> At:
        """Bring the newest state of a branch, a tag or a commit here (empty: of the main branch), without history.

        Raises `Unreachable` where nobody answers, `HubError` for a name that is not there, or too many bytes.
        """
        await asyncio.to_thread(self._make)
        at = await self._meant(ref)
        words = ["fetch", "--quiet", "--depth=1", "--no-tags", "--force", "--no-auto-gc", "--", self.address.url]
        kept = f"refs/hub/{at.commit}"
        await self._arriving([*words, f"{at.ref or at.commit}:{kept}"])
        found = await self.run("rev-parse", "--verify", "--quiet", f"{kept}^{{commit}}")
        return At(commit=found.decode().strip(), ref=at.ref)

    async def tree(self, commit: str, path: str = "") -> list[TreeEntry]:
        """Every file below a path. Raises `HubError` where the commit is not here, or lists too many."""
        words = ["ls-tree", "-r", "-z", "--long", "--full-tree", commit, *(("--", path) if path else ())]
        ended = await self._git(words, most=self.limits.listed)
        if ended.cut:
            raise HubError(f"{self.address.url} lists more files than are read.")
        if ended.code != 0:
            raise HubError(f"{self.address.url} does not hold {commit[:12]} {path}: {_said(ended.err)}")
        return [_entry(line) for line in ended.out.split(b"\0") if line]

    async def contents(self, oids: Sequence[str]) -> list[bytes]:
        """The content of each object, in that order. The caller has looked at their sizes."""
        words = [*self.words(), "cat-file", "--batch"]
        git = await open_piped(words, env=self.environment(), data="".join(f"{oid}\n" for oid in oids).encode())
        try:
            async with asyncio.timeout(SECONDS):
                out = await git.rest()
                await git.code()
        except TimeoutError as error:
            raise HubError(f"git cat-file took longer than {SECONDS:.0f} s.") from error
        finally:
            await git.close()
        return list(_batch(out, oids))

    async def run(self, *words: str, more: Mapping[str, str] | None = None, seconds: float = SECONDS) -> bytes:
        """What git says, with `more` in its environment. Raises `HubError` with its words."""
        ended = await self._git(words, more=more, seconds=seconds, most=MOST_SAID)
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
        seconds: float = SECONDS,
        most: int = 1 << 20,
        more: Mapping[str, str] | None = None,
    ) -> Finished:
        try:
            env = {**self.environment(), **(more or {})}
            return await run([*self.words(), *words], env=env, cwd=str(self.folder), seconds=seconds, most=most)
        except TimeoutError as error:
            raise Unreachable(f"{self.address.url}: git {words[0]} took longer than {seconds:.0f} s.") from error
        except OSError as error:
            raise HubError(f"git cannot be started: {error.strerror}.") from error

    def words(self) -> list[str]:
        """How git is called."""
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        return [found_git(self.variables), f"--git-dir={self.folder}", *settings]

    def environment(self) -> dict[str, str]:
        """What git gets to know of this machine."""
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
