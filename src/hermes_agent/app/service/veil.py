"""Ids of people that are phone numbers or addresses, hidden from the model and the logs behind a hash."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict, defaultdict
from functools import lru_cache
from urllib.parse import quote, unquote

from hermes_agent.store.chats.facts import Facts

KNOWN = 20_000
"""Ids that are hidden: those that were heard of last."""
SHORTEST = 4
"""Characters below which an id is too common a word to be looked for."""
WORD = re.compile(r"[^\W_]+")
PLACE, NAME = "privacy", "salt"


class Veil:
    """Hides the ids that it knows. The same id has the same hash in every process of one database, once `settle` has
    read what they share; nobody can find an id by trying all."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)
        self._known: OrderedDict[str, str] = OrderedDict()
        """Each id with the word that it begins with, by which it is looked for."""
        self._by_word: defaultdict[str, set[str]] = defaultdict(set)

    async def settle(self, facts: Facts) -> None:
        """Use the salt of this database, made where there is none. Raises `StoreError`."""
        if NAME not in await facts.of(PLACE):
            await facts.set(PLACE, NAME, self._salt.hex(), first=True)  # Another process may be at it too.
        self._salt = bytes.fromhex((await facts.of(PLACE))[NAME])

    def know(self, *ids: str) -> None:
        """Hide these from now on."""
        for each in ids:
            if len(each) >= SHORTEST and (begins := WORD.search(each)) is not None:
                self._known[each] = begins[0].lower()
                self._known.move_to_end(each)
                self._by_word[self._known[each]].add(each)
        while len(self._known) > KNOWN:
            oldest, word = self._known.popitem(last=False)
            self._by_word[word].discard(oldest)

    def of(self, identity: str) -> str:
        """What stands for an id."""
        return f"id-{hmac.new(self._salt, identity.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()[:10]}"

    def hide(self, text: str) -> str:
        """The text without any id that is known, however it is written there."""
        if not self._known:
            return text
        plain = text.lower()
        words = {*WORD.findall(plain), *(WORD.findall(unquote(plain)) if "%" in plain else ())}
        there = [each for word in words & self._by_word.keys() for each in self._by_word[word]]
        for each in sorted(there, key=len, reverse=True):
            text = _written(each).sub(self.of(each), text)
        return text


@lru_cache(maxsize=1024)
def _written(identity: str) -> re.Pattern[str]:
    """An id where no letter or digit goes on with it; its signs may be escaped as in addresses and keys."""
    signs = "".join(
        re.escape(sign) if (escaped := quote(sign, safe="")) == sign else f"(?:{re.escape(sign)}|{escaped})"
        for sign in identity
    )
    before = r"(?:(?<![^\W_])|(?<=%[0-9a-f]{2}))" if identity[0].isalnum() else ""
    after = r"(?![^\W_])" if identity[-1].isalnum() else ""
    return re.compile(before + signs + after, re.IGNORECASE)
