"""Handing a mail over fails in ways that say whether it was sent."""

import pytest

from hermes_agent.core.chat import Attachment
from hermes_agent.gateway.channel import NeverHere, NotNow, OutcomeUnknown, Part, TokenRefused
from hermes_agent.gateway.email.mailbox import Address
from hermes_agent.gateway.email.sending import (
    GREYLISTED,
    LONGEST_SUBJECT,
    MOST_REFERENCES,
    Author,
    Post,
    Thread,
    as_html,
    enclose,
    refused,
    refused_login,
    subject_of,
    written,
)
from hermes_agent.testing.platform import Trouble
from tests.doubles.email import mail_platform


@pytest.fixture
async def platform():
    async with mail_platform() as made:
        yield made


def post(platform, password: str = "secret", security: str = "none") -> Post:
    address = Address(host="127.0.0.1", port=platform.smtp_port, security=security)
    return Post(address=address, user="u", password=password, own="hermes@a.test")


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


AUTHOR = Author(address="hermes@agent.test", name="Hermes, the agent")


HELLO = Part(text="Hello")
NEW = Thread()


def mail(part: Part = HELLO, thread: Thread = NEW):
    return written(AUTHOR, ["ann@x.test"], thread, part, id_="hermes.1@agent.test", at=0.0)


def test_a_mail_is_marked_as_a_programs():
    assert mail()["Auto-Submitted"] == "auto-generated"
    assert mail(thread=Thread(ids=("a@x",)))["Auto-Submitted"] == "auto-replied"
    assert mail()["From"] == '"Hermes, the agent" <hermes@agent.test>'


def test_a_long_thread_keeps_its_first_and_last_ids():
    ids = tuple(f"{number}@x" for number in range(50))

    made = mail(thread=Thread(subject="s", ids=ids))

    kept = made["References"].split()
    assert (kept[0], kept[-1], len(kept)) == ("<0@x>", "<49@x>", MOST_REFERENCES)
    assert made["In-Reply-To"] == "<49@x>"


def test_a_subject_cannot_add_a_header():
    assert "Bcc" not in mail(thread=Thread(subject="a\r\nBcc: evil@x.test")).keys()  # noqa: SIM118  it has no `in`


@pytest.mark.parametrize(
    ("answered", "text", "subject"),
    [
        ("A plan", "x", "Re: A plan"),
        ("RE: A plan", "x", "RE: A plan"),
        ("", "\n# The *news*\nmore", "The *news"),
        ("", "", "A message from Hermes"),
    ],
)
def test_a_subject_says_what_it_is_about(answered, text, subject):
    assert subject_of(answered, text, "Hermes") == subject


def test_the_same_key_has_the_same_id():
    assert AUTHOR.message_id("a") == AUTHOR.message_id("a") != AUTHOR.message_id("b")
    assert AUTHOR.wrote(AUTHOR.message_id("a"))
    assert not AUTHOR.wrote("hermes.1@elsewhere.test")
    assert not AUTHOR.wrote("1@agent.test")


def test_html_holds_no_tags_of_the_text_and_loads_nothing():
    html = as_html("**a** <script>x</script> ![p](https://x.test/p.png) [j](javascript:x)\n\n| a |\n|---|\n| b |")

    assert "<strong>a</strong>" in html
    assert "<table>" in html
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html


def test_a_file_goes_with_the_mail():
    file = Attachment(path="a.bin", name="ä.bin", media_type="application/x-thing")

    made = mail(Part(text="", file=file))
    enclose(made, file, b"\0\1")
    (enclosed,) = made.iter_attachments()

    assert (enclosed.get_filename(), enclosed.get_content_type()) == ("ä.bin", "application/x-thing")
    assert enclosed.get_payload(decode=True) == b"\0\1"


def test_a_subject_that_somebody_made_for_it_is_said_again_in_part():
    assert subject_of("é " * 50_000, "", "Hermes") == "Re: " + "é " * (LONGEST_SUBJECT // 2)
