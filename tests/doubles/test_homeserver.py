"""matrix-nio talks to the double as to a homeserver."""

import io

import nio


async def test_it_keeps_files(homeserver, client):
    uploaded, _ = await client.upload(io.BytesIO(b"content"), "text/plain", filesize=7)

    assert (await client.download(uploaded.content_uri)).body == b"content"


async def test_it_is_refused_as_by_a_homeserver(homeserver, client):
    homeserver.refusal = (401, "M_UNKNOWN_TOKEN")

    found = await client.whoami()

    assert isinstance(found, nio.WhoamiError)
    assert found.status_code == "M_UNKNOWN_TOKEN"
