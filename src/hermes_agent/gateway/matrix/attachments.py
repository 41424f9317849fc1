"""Files of encrypted rooms: the bytes that the homeserver keeps, and what their receivers need to know."""

from __future__ import annotations

from hermes_agent.gateway.channel import NeverHere
from hermes_agent.gateway.matrix.shapes import Event, inside, text
from hermes_agent.host.late import late


def locked(content: bytes) -> tuple[bytes, Event]:
    """The bytes under which a file goes out, and its key."""
    made, keys = late("nio.crypto.attachments:encrypt_attachment")(content)
    return bytes(made), dict(keys)


def unlocked(content: bytes, keys: Event) -> bytes:
    """The file. Raises `NeverHere` where these are not its bytes, or no key."""
    wrong = late("nio.exceptions:EncryptionError")
    key, digest = text(inside(keys, "key").get("k")), text(inside(keys, "hashes").get("sha256"))
    try:
        return bytes(late("nio.crypto.attachments:decrypt_attachment")(content, key, digest, text(keys.get("iv"))))
    except (wrong, TypeError, ValueError) as error:
        raise NeverHere("The file cannot be decrypted.") from error
