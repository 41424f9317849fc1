"""matrix-nio's machine, which takes a key that was asked for from the device that made it, too."""

from __future__ import annotations

from typing import Any

from hermes_agent.gateway.matrix.shapes import inside, table, text
from hermes_agent.host.late import late

TAKE = "_handle_forwarded_room_key_event"


def machine() -> Any:  # noqa: ANN401  another library's
    """Its class. By itself it takes keys that were asked for from verified devices of its own account alone. What a
    device gives of its own session is as good as the key that it would have given unasked: the channel between the two
    says which device it is."""
    base: Any = late("nio.crypto:Olm")

    def take(self: Any, sender: str, sender_key: str, payload: dict[str, Any]) -> Any:  # noqa: ANN401  that library's
        content = table(payload.get("content"))
        asked = self.outgoing_key_requests.get(text(content.get("session_id")))
        named = (text(content.get("room_id")), text(content.get("algorithm")))
        if asked is None or (asked.room_id, asked.algorithm) != named or content.get("sender_key") != sender_key:
            return getattr(base, TAKE)(self, sender, sender_key, payload)
        signer, key = text(inside(payload, "keys").get("ed25519")), text(content.get("session_key"))
        session = self._import_group_session(key, signer, sender_key, asked.room_id, [])
        if session and self.inbound_group_store.add(session):
            self.save_inbound_group_session(session)
            self.outgoing_key_requests.pop(asked.session_id)
            self.store.remove_outgoing_key_request(asked)
        return None

    return type("Machine", (base,), {TAKE: take})
