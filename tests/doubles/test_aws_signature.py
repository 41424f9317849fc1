"""The check of signatures, judged by what botocore signs."""

from dataclasses import replace

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hermes_agent.host.inbound.message import Request
from tests.doubles.aws_signature import scope, signed_by

SECRETS = {"AKID": "secret"}


def signed(secret: str = "secret", token: str | None = None) -> Request:
    url = "https://bedrock.example/model/a.b-v1%3A0/converse?x=1"
    plain = AWSRequest("POST", url, {"content-type": "application/json"}, b'{"a": 1}')
    SigV4Auth(Credentials("AKID", secret, token), "bedrock", "eu-west-1").add_auth(plain)
    headers = {name.lower(): value for name, value in plain.headers.items()} | {"host": "bedrock.example"}
    path = "/model/a.b-v1%3A0/converse"
    return Request(method="POST", path=path, query="x=1", headers=headers, body=b'{"a": 1}', arrived=0.0)


@pytest.mark.parametrize("token", [None, "session token"])
def test_what_botocore_signs_is_recognised(token: str | None):
    request = signed(token=token)

    assert signed_by(request, SECRETS) == "AKID"
    assert scope(request) == ("eu-west-1", "bedrock")


@pytest.mark.parametrize(
    "changed", [{"body": b"{}"}, {"path": "/model/other/converse"}, {"query": ""}, {"method": "GET"}], ids=str
)
def test_a_request_that_was_changed_is_nobodys(changed: dict[str, object]):
    assert signed_by(replace(signed(), **changed), SECRETS) == ""


def test_another_secret_an_unknown_key_and_no_signature_are_nobodys():
    unsigned = replace(signed(), headers={"host": "x"})

    assert signed_by(signed("other"), SECRETS) == signed_by(signed(), {}) == signed_by(unsigned, SECRETS) == ""
    assert scope(unsigned) == ("", "")
