"""Handing a mail over fails in ways that say whether it was sent."""

import pytest

from hermes_agent.gateway.channel import NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.email.mailbox import Address
from hermes_agent.gateway.email.sending import GREYLISTED, Post, refused, refused_login
from hermes_agent.testing.platform import Trouble
from tests.doubles.email import mail_platform


@pytest.fixture
async def platform():
    async with mail_platform() as made:
        yield made


def post(platform, password: str = "secret", security: str = "none") -> Post:
    return Post(Address(host="127.0.0.1", port=platform.smtp_port, security=security), "u", password, "hermes@a.test")


CONTENT = b"Subject: x\r\nMessage-ID: <1@a.test>\r\n\r\n.Hello\r\n"


async def test_a_mail_is_handed_over(platform):
    await post(platform).send(["a@x.test", "b@x.test"], CONTENT)

    assert platform.taken[0].to == ("a@x.test", "b@x.test")
    assert platform.taken[0].content.endswith(b"\r\n.Hello")


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (Trouble.CUT, NotNow),
        (Trouble.BUSY, NotNow),
        (Trouble.BROKEN, NotNow),
        (Trouble.GONE, NeverHere),
        (Trouble.DEAF, OutcomeUnknown),
        (Trouble.GARBLED, OutcomeUnknown),
    ],
)
async def test_each_trouble_has_its_meaning(platform, trouble, error):
    platform.chats.order(trouble, "send")

    with pytest.raises(error):
        await post(platform).send(["a@x.test"], CONTENT)

    assert len(platform.taken) == (error is OutcomeUnknown)


async def test_a_wrong_password_is_one(platform):
    with pytest.raises(TokenRefused, match="EMAIL_PASSWORD"):
        await post(platform, "wrong").check()


async def test_a_server_that_is_not_there_is_no_outcome_unknown(platform):
    with pytest.raises(NotNow, match="cannot be reached"):
        await post(platform, security="tls").send(["a@x.test"], CONTENT)


@pytest.mark.parametrize(
    ("code", "error", "after"),
    [
        (421, NotNow, None),
        (451, NotNow, GREYLISTED),
        (530, TokenRefused, None),
        (552, NeverHere, None),
        (-1, OutcomeUnknown, None),
    ],
)
def test_an_answer_is_for_now_or_for_ever(code, error, after):
    found = refused(code, "a\nb")

    assert type(found) is error
    assert getattr(found, "retry_after", None) == after


def test_a_server_that_cannot_check_a_password_is_asked_again():
    assert isinstance(refused_login(454, "u", "h"), NotNow)
    assert isinstance(refused_login(535, "u", "h"), TokenRefused)
