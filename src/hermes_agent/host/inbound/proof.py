"""Proof of a request's sender: pure checks over its raw body, in the ways in which platforms sign."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

from hermes_agent.host.late import late

ED25519 = "cryptography.hazmat.primitives.asymmetric.ed25519:Ed25519PublicKey"


def same(given: str, expected: str) -> bool:
    """Whether two texts are the same; takes as long for wrong ones as for right ones."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode("utf-8", "surrogateescape"))


def hmac_hex(key: str, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as hexadecimal digits."""
    return hmac.digest(key.encode(), data, algorithm).hex()


def hmac_base64(key: bytes, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as base64."""
    return base64.b64encode(hmac.digest(key, data, algorithm)).decode()


def sorted_form(url: str, fields: Mapping[str, str]) -> bytes:
    """What is signed of a form: the address, then every field's name and value, ordered by their names."""
    return f"{url}{''.join(f'{name}{fields[name]}' for name in sorted(fields))}".encode()


def is_ed25519(key: str, signature: str, data: bytes) -> bool:
    """Whether the owner of this public key (both in hexadecimal digits) signed the data. Raises `ImportError` where
    `cryptography` is not installed."""
    public = late(ED25519)
    try:
        public.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), data)
    except (ValueError, late("cryptography.exceptions:InvalidSignature")):
        return False
    return True


def digest(data: bytes) -> str:
    """SHA-256 as hexadecimal digits: the identity of what no sender named."""
    return hashlib.sha256(data).hexdigest()
