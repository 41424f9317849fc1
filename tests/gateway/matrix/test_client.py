import pytest

from hermes_agent.gateway.channel import MessageGone, NeverHere, TokenRefused
from hermes_agent.gateway.matrix.client import Client, joined, meaning
from hermes_agent.gateway.service import Answer, Service
from tests.gateway.matrix.hearing import hearing


def answer(status: int, body: bytes) -> Answer:
    return Answer(status=status, headers={}, body=body)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (403, b'{"errcode": "M_FORBIDDEN", "error": "not in room"}', NeverHere),
        (403, b'{"errcode": "M_USER_DEACTIVATED"}', TokenRefused),
        (404, b'{"errcode": "M_NOT_FOUND"}', MessageGone),
        (400, b'{"errcode": "M_UNKNOWN", "error": "no such relation"}', MessageGone),
        (413, b'{"errcode": "M_TOO_LARGE"}', NeverHere),
        (400, b"<html>", NeverHere),
        (400, b"[]", NeverHere),
    ],
)
def test_an_error_is_what_it_means(status, body, kind):
    assert type(meaning(answer(status, body))) is kind


def test_ids_are_harmless_in_addresses():
    assert joined("rooms", "!a/b:x", "$é") == "rooms/%21a%2Fb%3Ax/%24%C3%A9"


@pytest.mark.parametrize("address", ["https://x.test/a", "mxc://x", "mxc://x/a/b", ""])
async def test_a_file_is_asked_for_only_by_an_address_of_matrix(tmp_path, address):
    async with hearing(tmp_path) as at:
        client = Client(Service(title="x", http=at.needs.http, base=at.platform.url, meaning=meaning))
        with pytest.raises(NeverHere, match="no address"):
            await client.download(address, 10**9)


async def test_a_file_that_is_not_given_out_is_said_to_be(tmp_path):
    async with hearing(tmp_path) as at:
        headers = {"Authorization": "Bearer x"}
        client = Client(Service(title="x", http=at.needs.http, headers=headers, base=at.platform.url, meaning=meaning))
        with pytest.raises(NeverHere, match="404"):
            await client.download("mxc://hermes.test/nothing", 10**9)


async def test_an_older_homeserver_gives_files_out_in_the_older_way(tmp_path):
    async with hearing(tmp_path) as at:
        at.platform.files["f1"], at.platform.old = b"content", True
        headers = {"Authorization": "Bearer x"}
        client = Client(Service(title="x", http=at.needs.http, headers=headers, base=at.platform.url, meaning=meaning))

        assert await client.download("mxc://hermes.test/f1", 10**9) == b"content"
