"""Proof of a request's sender: pure checks over its raw body, in the ways in which platforms sign."""

from __future__ import annotations

import base64
import hashlib
import hmac


def same(given: str, expected: str) -> bool:
    """Whether two texts are the same; takes as long for wrong ones as for right ones."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode("utf-8", "surrogateescape"))


def hmac_hex(key: str, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as hexadecimal digits."""
    return hmac.digest(key.encode(), data, algorithm).hex()


def hmac_base64(key: bytes, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as base64."""
    return base64.b64encode(hmac.digest(key, data, algorithm)).decode()


def digest(data: bytes) -> str:
    """SHA-256 as hexadecimal digits: the identity of what no sender named."""
    return hashlib.sha256(data).hexdigest()
