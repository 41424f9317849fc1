"""matrix-nio asks the double for keys as a homeserver."""

import nio

from tests.doubles.matrix import OWN


async def test_it_keeps_the_keys_of_devices_and_what_goes_to_them(homeserver, tmp_path):
    config = nio.AsyncClientConfig(encryption_enabled=True)
    client = nio.AsyncClient(homeserver.url, OWN, device_id="DEVICE", store_path=str(tmp_path), config=config)
    client.restore_login(OWN, "DEVICE", "secret")
    uploaded = await client.keys_upload()
    client.olm.users_for_key_query.add(OWN)
    queried = await client.keys_query()
    message = nio.ToDeviceMessage("m.dummy", OWN, "OTHER", {})
    sent = await client.to_device(message)
    await client.close()
    client.olm.store.database.close()

    assert isinstance(uploaded, nio.KeysUploadResponse)
    assert queried.device_keys[OWN].keys() == {"DEVICE"}
    assert isinstance(sent, nio.ToDeviceResponse)
    assert homeserver.direct == [("m.dummy", {OWN: {"OTHER": {}}})]
