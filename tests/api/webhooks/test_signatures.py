"""Signatures: the senders' own examples, and everything that is not one."""

import base64

import pytest

from hermes_agent.api.webhooks.signatures import SCHEMES, Signed, signed
from hermes_agent.host.inbound.message import Refused

NOW = 1_614_265_330.0
# GitHub's documentation: "Validating webhook deliveries".
GITHUB = (
    "It's a Secret to Everybody",
    b"Hello, World!",
    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
)
# Svix's documentation: "Verifying webhooks manually".
SVIX = {
    "svix-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "svix-timestamp": "1614265330",
    "svix-signature": "v1,bm9ldHUjKzFob2VudXRob2VodWUzMjRvdWVvdW9ldQo= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
SVIX_SECRET, SVIX_BODY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'


def request(headers: dict[str, str], body: bytes = b"{}", now: float = NOW) -> Signed:
    return Signed(headers=headers, body=body, now=now, skew=300)


def test_github_s_own_example_is_proven():
    secret, body, signature = GITHUB
    found = SCHEMES["github"](request({"x-hub-signature-256": signature, "x-github-event": "push"}, body), secret)
    assert found.event == "push"


def test_svix_s_own_example_is_proven_under_both_names():
    renamed = {name.replace("svix", "webhook"): value for name, value in SVIX.items()}
    found = [SCHEMES["svix"](request(headers, SVIX_BODY), SVIX_SECRET) for headers in (SVIX, renamed)]
    assert found[0].identity == found[1].identity


def test_gitlab_s_signing_tokens_are_proven_and_are_no_way_around_the_secret():
    headers = {name.replace("svix", "webhook"): value for name, value in SVIX.items()} | {"x-gitlab-event": "Push Hook"}
    found = SCHEMES["gitlab"](request(headers, SVIX_BODY), SVIX_SECRET)
    with pytest.raises(Refused):
        SCHEMES["gitlab"](request({**headers, "x-gitlab-token": SVIX_SECRET}, b"[]"), SVIX_SECRET)
    assert found.event == "Push Hook"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("secret", [SVIX_SECRET, "not base64!", "whsec_abc", "a-plain-secret!", "küche"])
def test_what_is_signed_here_is_proven_and_the_same_again_has_the_same_identity(scheme, secret):
    headers = signed(scheme, secret, b"{}", NOW, "push")
    one, two = (SCHEMES[scheme](request(headers), secret) for _ in range(2))
    assert one.identity == two.identity


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("wrong", ["secret", "body", "nothing", "odd"])
def test_what_is_not_proven_is_refused(scheme, wrong):
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()
    headers = signed(scheme, secret, b"{}", NOW, "push")
    body, known = b"{}", secret
    match wrong:
        case "secret":
            known = "whsec_" + base64.b64encode(b"another-secret-x").decode()
        case "body" if scheme != "gitlab":  # GitLab's token says nothing of the body.
            body = b"[]"
        case "odd":
            headers = {
                name: "\udcff" if "signature" in name or "token" in name else value for name, value in headers.items()
            }
        case _:
            headers = {}
    with pytest.raises(Refused) as refused:
        SCHEMES[scheme](request(headers, body), known)
    assert (refused.value.status, refused.value.code) == (401, "wrong_signature")


@pytest.mark.parametrize("scheme", ["svix", "generic"])
@pytest.mark.parametrize("away", [-301, 301, 10_000])
def test_an_old_request_and_a_wrong_clock_are_told_apart_from_a_forgery(scheme, away):
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()
    headers = signed(scheme, secret, b"{}", NOW, "")
    with pytest.raises(Refused, match="Check the clocks") as stale:
        SCHEMES[scheme](request(headers, now=NOW + away), secret)
    assert stale.value.code == "stale_signature"
    SCHEMES[scheme](request(headers, now=NOW + 299), secret)


@pytest.mark.parametrize("time", ["", "x", "-1", "\N{FULLWIDTH DIGIT NINE}", "1" * 40])
def test_an_odd_time_is_a_forgery(time):
    with pytest.raises(Refused) as refused:
        SCHEMES["generic"](request({"x-webhook-timestamp": time}), "secret")
    assert refused.value.code == "wrong_signature"


def test_a_svix_secret_that_is_no_base64_is_taken_as_it_is():
    with pytest.raises(Refused):
        SCHEMES["svix"](request(SVIX, SVIX_BODY), "not base64!")
