"""The account's keys."""

import json
import shutil

import pytest
import vodozemac

from hermes_agent.gateway.channel import NotNow, TokenRefused
from hermes_agent.gateway.matrix.client import Client, meaning
from hermes_agent.gateway.matrix.decryption import USAGES, Decryption, canonical, is_signed, kept, made
from hermes_agent.gateway.matrix.rooms import Rooms
from hermes_agent.gateway.service import Service
from tests.contracts.channels import needs
from tests.doubles.homeserver import matrix_platform
from tests.doubles.matrix import OWN, MatrixPlatform

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


DEVICE = "DEVICE"


@pytest.fixture
async def platform():
    async with matrix_platform() as made:
        yield made


@pytest.fixture
async def given(tmp_path):
    made = needs(tmp_path)
    yield made
    await made.http.close()


async def begun(platform: MatrixPlatform, given, folder) -> list[str]:
    """Begin as another process; what its owner is told."""
    notes: list[str] = []
    headers = {"Authorization": "Bearer x"}

    client = Client(Service(title="x", http=given.http, headers=headers, base=platform.url, meaning=meaning))
    crypto = Decryption(client, folder, Rooms(client), notes.append)
    try:
        await crypto.begin(OWN, DEVICE)
        await crypto.synced({})
        await crypto.synced({})
    finally:
        await crypto.close()
    return notes


async def test_an_account_without_keys_gets_some_and_they_sign_the_device_once(platform, given, tmp_path):
    (first,) = await begun(platform, given, tmp_path / "keys")
    known = str(platform.keys)
    (second,) = await begun(platform, given, tmp_path / "keys")

    fingerprint = platform.keys["device_keys"][OWN][DEVICE]["keys"][f"ed25519:{DEVICE}"]
    assert is_signed(platform.keys, OWN, DEVICE)
    assert platform.keys["master_keys"][OWN]["signatures"][OWN].keys() == {f"ed25519:{DEVICE}"}
    assert first == second
    assert first.startswith(f"device {DEVICE}, fingerprint ")
    assert first.replace(" ", "").endswith(fingerprint)
    assert str(platform.keys) == known


async def test_keys_of_another_program_are_left_alone(platform, given, tmp_path, caplog):
    theirs = {"user_id": OWN, "usage": ["master"], "keys": {"ed25519:other": "other"}}
    platform.keys["master_keys"] = {OWN: theirs}
    (note,) = await begun(platform, given, tmp_path / "keys")

    assert platform.keys["master_keys"] == {OWN: theirs}
    assert note.endswith("not signed by its account")
    assert "verify this device from there" in caplog.text


async def test_a_homeserver_that_wants_a_password_leaves_it_unsigned_and_at_work(platform, given, tmp_path, caplog):
    platform.guarded = True
    (note,) = await begun(platform, given, tmp_path / "keys")
    assert note.endswith("not signed by its account")
    assert "takes no signature" in caplog.text

    platform.guarded = False
    (note,) = await begun(platform, given, tmp_path / "keys")
    assert not note.endswith("not signed by its account")
    platform.keys["device_keys"][OWN][DEVICE]["signatures"].clear()
    platform.guarded = True
    (note,) = await begun(platform, given, tmp_path / "keys")
    assert note.endswith("not signed by its account")


async def test_a_device_whose_keys_were_lost_is_said_and_not_used(platform, given, tmp_path):
    await begun(platform, given, tmp_path / "keys")
    known = str(platform.keys)
    shutil.rmtree(tmp_path / "keys")

    with pytest.raises(TokenRefused, match="log in anew"):
        await begun(platform, given, tmp_path / "keys")
    assert str(platform.keys) == known


async def test_a_file_that_cannot_be_read_is_no_reason_for_other_keys(platform, given, tmp_path):
    (tmp_path / "keys" / "signing.json").mkdir(parents=True)

    with pytest.raises(NotNow, match="not a file"):
        await begun(platform, given, tmp_path / "keys")
    assert "master_keys" not in platform.keys
