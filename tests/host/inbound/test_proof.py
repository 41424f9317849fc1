"""Proofs of senders, by the examples of those who sign."""

import pytest

from hermes_agent.host.inbound.proof import hmac_base64, hmac_hex, is_ed25519, same, sorted_form

# RFC 8032, section 7.1, test 2.
KEY = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def test_github_s_own_example():
    proof = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert hmac_hex("It's a Secret to Everybody", b"Hello, World!") == proof


def test_twilio_s_own_example():
    """Its documentation, "Validating Signatures from Twilio"."""
    fields = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+12349013030",
        "Digits": "1234",
        "From": "+12349013030",
        "To": "+18005551212",
    }
    signed = sorted_form("https://mycompany.com/myapp.php?foo=1&bar=2", dict(reversed(fields.items())))
    assert hmac_base64(b"12345", signed, "sha1") == "0/KCTR6DLpKmkAf8muzZqo1nDgQ="


def test_what_another_key_signed_or_no_key_is_not_proven():
    pytest.importorskip("cryptography")
    assert is_ed25519(KEY, SIGNATURE, b"\x72")
    assert not is_ed25519(KEY, SIGNATURE, b"\x73")
    assert not is_ed25519(KEY, "no digits", b"\x72")
    assert not is_ed25519("00", SIGNATURE, b"\x72")


def test_odd_texts_are_compared_too():
    assert same("küche", "küche")
    assert not same("\udcff", "k")
