"""Pseudonyms: replaces user ids that are phone numbers or addresses by hashes, in texts for the model and the logs."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from hermes_agent.store.pairing import Facts

KNOWN = 20_000
"""Ids that are hidden beside those of the settings: those that were heard of last."""
SHORTEST = 4
"""Characters below which an id is too common a word to be looked for."""
MOST_WORDS = 16
"""Words of an id: whoever writes a text chooses how long the look through it takes."""
WORD = re.compile(r"[^\W_]+")
ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2})+")
PLACE, NAME = "privacy", "salt"


class Pseudonyms:
    """Replaces known user ids in texts by salted hashes. Processes that share a database share its salt after
    `load_salt`, so an id has the same hash in all of them; without the salt, hashes cannot be reversed by trying
    ids."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._kept: set[str] = set()
        self._begun: Counter[tuple[str, ...]] = Counter()
        """How many ids begin with these words."""
        self._by_core: defaultdict[str, set[str]] = defaultdict(set)
        """The ids by what is between their first and their last letter or digit."""

    async def load_salt(self, facts: Facts) -> None:
        """Load this database's salt; create it if there is none. Raises `StoreError`."""
        if NAME not in await facts.of(PLACE):
            await facts.set(PLACE, NAME, self._salt.hex(), first=True)  # Another process may be at it too.
        self._salt = bytes.fromhex((await facts.of(PLACE))[NAME])

    def keep(self, *ids: str) -> None:
        """Hide these ids permanently: they are never evicted."""
        for each in ids:
            self.know(each)
            self._known.pop(each, None)
            self._kept.add(each)

    def know(self, *ids: str) -> None:
        """Hide these ids; the least recently seen ones are evicted above `KNOWN`."""
        for each in ids:
            if each in self._known:
                self._known.move_to_end(each)
            elif each not in self._kept and len(each) >= SHORTEST and 0 < len(WORD.findall(each)) <= MOST_WORDS:
                self._known[each] = None
                self._note(each, 1)
        while len(self._known) > KNOWN:
            self._note(self._known.popitem(last=False)[0], -1)

    def _note(self, identity: str, count: int) -> None:
        words = [*WORD.finditer(_plain(identity))]
        core = _plain(identity)[words[0].start() : words[-1].end()]
        for number in range(len(words)):
            begun = tuple(word[0] for word in words[: number + 1])
            self._begun[begun] += count
            if not self._begun[begun]:
                del self._begun[begun]
        if count > 0:
            self._by_core[core].add(identity)
        else:
            self._by_core[core].discard(identity)
            if not self._by_core[core]:
                del self._by_core[core]

    def of(self, identity: str) -> str:
        """The pseudonym of an id."""
        return f"id-{hmac.new(self._salt, identity.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()[:10]}"

    def hide(self, text: str) -> str:
        """Replace each known id that stands as a whole word, in any letter case or URL escaping. Linear in the
        length of the text."""
        if not self._by_core:
            return text
        plain, places = _plain(text), range(len(text) + 1) if "%" not in text else _places(text)
        hidden, done = list[str](), 0
        for start, end, identity in self._found(plain):
            hidden += [text[done : places[start]], self.of(identity)]
            done = places[end]
        return "".join((*hidden, text[done:]))

    def _found(self, plain: str) -> Iterator[tuple[int, int, str]]:
        """Where ids stand, from left to right; of those that begin at one word the longest."""
        words, past = [*WORD.finditer(plain)], 0
        for number, first in enumerate(words):
            if first.start() >= past and (found := self._longest(plain, words, number, past)) is not None:
                yield found
                past = found[1]

    def _longest(
        self, plain: str, words: Sequence[re.Match[str]], number: int, past: int
    ) -> tuple[int, int, str] | None:
        begun, found, start = tuple[str, ...](), None, words[number].start()
        for word in words[number : number + MOST_WORDS]:
            begun = (*begun, word[0])
            if begun not in self._begun:
                break
            core = plain[start : word.end()]
            for identity in sorted(self._by_core.get(core, ()), key=len):
                before, _, after = _plain(identity).partition(core)
                begins, ends = start - len(before), word.end() + len(after)
                if begins >= past and plain[begins:ends] == _plain(identity):
                    found = begins, ends, identity
        return found


def _plain(text: str) -> str:
    """A text in small letters, without the escapes of addresses and keys."""
    text = unquote(text, errors="surrogateescape") if "%" in text else text
    low = text.lower()
    return low if len(low) == len(text) else "".join(each.lower() if len(each.lower()) == 1 else each for each in text)


def _places(text: str) -> Sequence[int]:
    """Where each character of the text without escapes begins in the text with them, and where the text ends."""
    places, done = list[int](), 0
    for run in ESCAPED.finditer(text):
        places += range(done, run.start())
        done = run.start()
        for sign in unquote(run[0], errors="surrogateescape"):
            places.append(done)
            done += 3 * len(sign.encode("utf-8", "surrogateescape"))
    return [*places, *range(done, len(text) + 1)]
