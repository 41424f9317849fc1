"""What the agent writes is a mail that every program shows, threads, and leaves unanswered."""

import pytest

from hermes_agent.core.outbound import Attachment
from hermes_agent.gateway.channel import Part
from hermes_agent.gateway.email.writing import (
    LONGEST_SUBJECT,
    MOST_REFERENCES,
    Author,
    Thread,
    as_html,
    enclose,
    subject_of,
    written,
)

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
