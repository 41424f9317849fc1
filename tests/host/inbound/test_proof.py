"""Proofs of senders, by the examples of those who sign."""

from hermes_agent.host.inbound.proof import hmac_hex, same


def test_github_s_own_example():
    proof = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert hmac_hex("It's a Secret to Everybody", b"Hello, World!") == proof


def test_odd_texts_are_compared_too():
    assert same("küche", "küche")
    assert not same("\udcff", "k")
