"""External memory ByteRover (https://docs.byterover.dev), through its program `brv` (npm: byterover-cli) and its
curate protocol."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import PRIVATE_FOLDER
from hermes_agent.host.process import run
from hermes_agent.memory.backend import Exchange, Needs, rows, texts
from hermes_agent.store.facts.facts import Source

MOST = 5
SECONDS = 25.0
LONGEST = 16_000
"""Characters of one topic; a program's argument may not be much longer."""

LONGEST_TITLE = 80
MISSING = "byterover needs its program `brv` on this machine (`npm install -g byterover-cli`)."
STEP, EXISTS = "needs-llm-step", "path-exists"
Data = Mapping[str, object]


class _Said(msgspec.Struct):
    success: bool = False
    data: dict[str, object] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRover:
    """A ByteRover context tree per person, in its own folder; searched without a model and never synchronised."""

    folder: Path
    environment: Mapping[str, str] = field(repr=False)

    async def health(self) -> str:
        await self._ask("status")
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        found = await self._ask("search", "--limit", str(MOST), "--", query)
        return texts(rows(found, "results"), "excerpt", "content", "title")[:MOST]

    async def remember(self, exchange: Exchange) -> None:
        await self._keep(f"conversations/{_plain(exchange.session)}", f"Person: {exchange.said}", exchange.reply)

    async def add(self, fact: str, _source: Source, /) -> None:
        await self._keep("facts", fact)

    async def leaving(self, session: str, text: str) -> None:
        await self._keep(f"conversations/{_plain(session)}", text)

    async def ended(self, session: str) -> None:
        """Does nothing: each topic is complete when written."""

    async def _keep(self, place: str, *paragraphs: str) -> None:
        """One topic. The program asks for its HTML, or, in versions with a model of their own, writes it by itself."""
        text = _argument("\n\n".join(paragraphs))[:LONGEST]
        asked = await self._ask("curate", "--", text)
        if asked.get("status") != STEP:
            return
        meta = {"type": "ADD", "impact": "low", "reason": "Said in a conversation.", "summary": _title(text)}
        envelope = msgspec.json.encode({"html": topic(place, text), "meta": meta}).decode()
        kept = await self._ask("curate", "--session", str(asked.get("sessionId", "")), "--response", envelope)
        problems = rows(kept, "errors")
        # What is there already under the hash of its words is the same text.
        if kept.get("status") != "done" and all(problem.get("kind") != EXISTS for problem in problems):
            raise HermesError(f"byterover kept nothing: {'; '.join(texts(problems, 'message')) or kept.get('status')}")

    async def _ask(self, command: str, *arguments: str) -> Data:
        self.folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        argv = ["brv", command, "--format", "json", *map(_argument, arguments)]
        try:
            ended = await run(argv, env=self.environment, cwd=str(self.folder), seconds=SECONDS, most=1 << 20)
        except FileNotFoundError as error:
            raise HermesError(MISSING) from error
        except (OSError, TimeoutError) as error:
            raise HermesError(f"byterover: `brv {command}` did not answer ({type(error).__name__}).") from error
        said = _last(ended.out)
        if said is None:
            words = ended.err or ended.out
            raise HermesError(f"byterover answered with no JSON: {words[:200].decode('utf-8', 'replace').strip()}")
        if not said.success and said.data.get("status") != STEP and not rows(said.data, "errors"):
            why = said.data.get("error") or said.data.get("message") or ended.code
            raise HermesError(f"byterover refused: {str(why)[:200]}")
        return said.data


def topic(place: str, text: str) -> str:
    """One topic in ByteRover's HTML, at a path derived from its words, so that the same text is stored once."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    title = html.escape(_title(text), quote=True)
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in text.split("\n") if line.strip())
    return f'<bv-topic path="{place}/t_{digest}" title="{title}"><bv-highlights>{lines}</bv-highlights></bv-topic>'


def _argument(text: str) -> str:
    """What a program can be given: no zero byte, no half of a character."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _title(text: str) -> str:
    return " ".join(text.split())[:LONGEST_TITLE]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "session"


def _last(out: bytes) -> _Said | None:
    """The last answer: the program may tell of its progress before, a JSON object in each line."""
    for line in reversed((out, *out.splitlines())):
        try:
            return msgspec.json.decode(line, type=_Said)
        except msgspec.DecodeError:
            continue
    return None


def make(needs: Needs) -> ByteRover:
    """Creates the backend, in the folder of the notes; the program is located on first use."""
    return ByteRover(folder=needs.folder / "byterover" / needs.space, environment=needs.environment)
