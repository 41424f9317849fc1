"""The account's keys."""

import json

import pytest
import vodozemac

from hermes_agent.gateway.matrix.signing import USAGES, canonical, is_signed, kept, made

USER = "@hermes:x"


def holds(content: dict, key: str) -> None:
    """Raises where the signature of a key is none."""
    bare = {name: value for name, value in content.items() if name not in ("signatures", "unsigned")}
    signature = vodozemac.Ed25519Signature.from_base64(content["signatures"][USER][f"ed25519:{key}"])
    vodozemac.Ed25519PublicKey.from_base64(key).verify_signature(canonical(bare), signature)


def test_keys_are_the_same_when_they_are_read_again_and_nobody_else_reads_them(tmp_path):
    path = tmp_path / "signing.json"
    keys = made(path, USER)

    again = kept(path, USER)
    assert again is not None
    assert [again.public(usage) for usage in USAGES] == [keys.public(usage) for usage in USAGES]
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept(path, "@other:x") is None


@pytest.mark.parametrize("content", ["", "x", "[]", json.dumps({USER: {"master": "AAAA"}}), json.dumps({USER: 5})])
def test_a_file_that_holds_none_has_none(tmp_path, content):
    path = tmp_path / "signing.json"
    path.write_text(content)

    assert kept(path, USER) is None


def test_the_master_key_signs_the_others_and_they_what_they_are_for(tmp_path):
    keys = made(tmp_path / "signing.json", USER)
    stated = keys.stated()

    master = keys.public("master")
    holds(stated["self_signing_key"], master)
    holds(stated["user_signing_key"], master)
    assert stated["master_key"]["usage"] == ["master"]
    assert keys.is_of({"master_keys": {USER: stated["master_key"]}})
    assert not keys.is_of({})

    device = {
        "device_id": "D",
        "keys": {"ed25519:D": "x"},
        "signatures": {USER: {"ed25519:D": "y"}},
        "unsigned": {"a": 1},
    }
    signed = keys.signed("self_signing", device)
    holds(signed, keys.public("self_signing"))
    assert signed["signatures"][USER]["ed25519:D"] == "y"
    assert "unsigned" not in signed

    found = {"self_signing_keys": {USER: stated["self_signing_key"]}, "device_keys": {USER: {"D": signed, "E": device}}}
    assert is_signed(found, USER, "D")
    assert not is_signed(found, USER, "E")


def test_what_is_signed_is_written_in_one_way():
    assert canonical({"b": [1, "ö"], "a": {"d": None, "c": True}}) == '{"a":{"c":true,"d":null},"b":[1,"ö"]}'.encode()
