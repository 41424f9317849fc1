"""Ids of people that are phone numbers or addresses, hidden from the model and the logs behind a hash."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict

from hermes_agent.store.chats.facts import Facts

KNOWN = 20_000
"""Ids that are hidden: those that were heard of last."""
SHORTEST = 4
"""Characters below which an id is too common a word to be looked for."""
WORDS = re.compile(r"[^\s\"'`<>()\[\]{},;]+")
PLACE, NAME = "privacy", "salt"


class Veil:
    """Hides the ids that it knows. The same id has the same hash in every process of one database, once `settle` has
    read what they share; nobody can find an id by trying all."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)
        self._known: OrderedDict[str, None] = OrderedDict()

    async def settle(self, facts: Facts) -> None:
        """Use the salt of this database, made where there is none. Raises `StoreError`."""
        if NAME not in await facts.of(PLACE):
            await facts.set(PLACE, NAME, self._salt.hex(), first=True)  # Another process may be at it too.
        self._salt = bytes.fromhex((await facts.of(PLACE))[NAME])

    def know(self, *ids: str) -> None:
        """Hide these from now on."""
        for each in ids:
            if len(each) >= SHORTEST:
                self._known[each] = None
                self._known.move_to_end(each)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)

    def of(self, identity: str) -> str:
        """What stands for an id."""
        return f"id-{hmac.new(self._salt, identity.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()[:10]}"

    def hide(self, text: str) -> str:
        """The text without any id that is known."""
        return WORDS.sub(self._word, text) if self._known else text

    def _word(self, found: re.Match[str]) -> str:
        """A word, whole, or its parts between colons: keys of conversations are made of them."""
        word = found[0].rstrip(".")
        rest = found[0][len(word) :]
        if word in self._known:
            return self.of(word) + rest
        parts = re.split(r"(:|/|%3A|=|#)", word)
        return "".join(self.of(part) if part in self._known else part for part in parts) + rest
