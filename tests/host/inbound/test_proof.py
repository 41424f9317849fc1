"""Proofs of senders, by the examples of those who sign."""

from hermes_agent.host.inbound.proof import hmac_base64, hmac_hex, same, sorted_form


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


def test_odd_texts_are_compared_too():
    assert same("küche", "küche")
    assert not same("\udcff", "k")
