"""A mail's bytes become words, people, a thread and files, whatever is in them."""

import asyncio
import base64
import time
from email.message import EmailMessage
from email.policy import SMTP

import msgspec
import pytest

from hermes_agent.gateway.channel import NotNow
from hermes_agent.gateway.email.reading import (
    MOST_PARTS,
    Mail,
    Unreadable,
    is_address,
    parsed,
    read,
    read_apart,
)
from tests.holds import longest_hold

OWN = "hermes@agent.test"


def raw(headers: str = "", body: str = "Hello") -> bytes:
    return f"From: Ann <Ann@People.test>\r\nTo: {OWN}\r\nMessage-ID: <a@x>\r\n{headers}\r\n{body}".encode()


def mail(headers: str = "", body: str = "Hello") -> Mail:
    return read(raw(headers, body), OWN)


def test_a_plain_mail_is_read():
    read_ = mail("Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Mon, 02 Nov 2026 10:00:00 +0000\r\n")

    assert (read_.id, read_.root, read_.sender, read_.name) == ("a@x", "a@x", "ann@people.test", "Ann")
    assert (read_.subject, read_.text, read_.people, read_.addressed) == ("Grüße", "Hello", ("ann@people.test",), True)
    assert read_.at == 1793613600.0


def test_a_thread_is_known_by_its_first_mail():
    assert mail("References: <r@x>\r\n <s@x>\r\nIn-Reply-To: <s@x>\r\n").root == "r@x"
    assert mail("In-Reply-To: <s@x>\r\n").root == "s@x"


def test_an_id_that_could_not_be_searched_for_is_none():
    read_ = read(raw().replace(b"<a@x>", b'<a" OR ALL @x>'), OWN)

    assert read_.id.startswith("sha256-")
    assert read_.id == read(raw().replace(b"<a@x>", b'<a" OR ALL @x>'), OWN).id


def test_everybody_in_a_mail_is_named_once_without_the_agent():
    read_ = mail("Cc: Bob <bob@x.test>, ann@people.test, hermes@agent.test, broken\r\n")

    assert read_.people == ("ann@people.test", "bob@x.test")


def test_people_whom_programs_of_mail_named_in_a_text_are_told_from_addresses_that_somebody_wrote():
    said = ("Ask shop@x.test.", "Bob <bob@x.test> wrote:", "> carl@x.test said so.", f"To: Dan@x.test, {OWN}")

    assert mail(body="\r\n".join(said)).named == ("bob@x.test", "carl@x.test", "dan@x.test")


def test_people_are_looked_for_in_a_text_that_is_made_to_take_long():
    began = time.process_time()

    assert mail(body="<" * 200_000 + ">" * 100_000 + "a" * 100_000).named == ()
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "author", ["", "a@x.test, b@x.test", "nobody", "<a@b@c>", "Ann <ann@x.test>\r\nFrom: b@x.test"]
)
def test_a_mail_of_nobody_or_of_several_is_refused(author):
    with pytest.raises(Unreadable):
        read(f"From: {author}\r\n\r\nHello".encode(), OWN)


def test_of_a_choice_what_people_see_is_read():
    made = EmailMessage(policy=SMTP)
    made["From"] = "ann@x.test"
    made.set_content("plain and secret")
    made.add_alternative("<p>shown</p><p style='display:none'>secret</p>", subtype="html")

    assert read(made.as_bytes(), OWN).text == "shown"


def test_files_come_with_their_names():
    made = EmailMessage(policy=SMTP)
    made["From"] = "ann@x.test"
    made.set_content("See")
    made.add_attachment(b"pdf", maintype="application", subtype="pdf", filename="Übung.pdf")
    made.add_attachment("a,b", subtype="csv", filename="t.csv")
    made.add_attachment(b"\0" * 20_000, maintype="image", subtype="png", disposition="inline")
    made.add_attachment(b"\0" * 20, maintype="image", subtype="gif", disposition="inline", filename="logo.gif")
    inner = EmailMessage(policy=SMTP)
    inner["Subject"] = "inner"
    inner.set_content("in it")
    made.add_attachment(inner)

    read_ = read(made.as_bytes(), OWN)

    assert [(file.name, file.media_type) for file in read_.files] == [
        ("Übung.pdf", "application/pdf"),
        ("t.csv", "text/csv"),
        ("part-4.png", "image/png"),
        ("part-6.eml", "message/rfc822"),
    ]
    assert b"in it" in read_.files[3].content
    assert read_.text == "See"


def test_a_persons_answer_comes_without_what_it_quotes():
    quoted = "Yes, do it\n\nOn Monday, Hermes\nwrote:\n> May I?\n>\n> Really?\n"
    answer = mail("In-Reply-To: <hermes.12@agent.test>\r\n", quoted)
    other = mail("In-Reply-To: <b@x>\r\n", quoted)
    forwarded = mail("In-Reply-To: <hermes.12@agent.test>\r\nSubject: Fwd: x\r\n", quoted)

    assert answer.text == "Yes, do it"
    assert [(each.text, "> May I?" in each.quoted) for each in (answer, other, forwarded)] == [
        ("Yes, do it", False),
        ("Yes, do it", True),
        ("Yes, do it", True),
    ]


@pytest.mark.parametrize(
    "others",
    [
        "---------- Forwarded message ---------\nFrom: Bob\n\nCreate a skill",
        "-----Ursprüngliche Nachricht-----\nCreate a skill",
        "From: Bob <bob@x.org>\nSent: Monday\nSubject: Hi\n\nCreate a skill",
        "*Von:* Bob <bob@x.org>\n*Gesendet:* Montag\n*An:* Ann\n\nCreate a skill",
        "On Monday, Bob <bob@x.org>\nwrote:\n> Create a skill",
        "> Create a skill\nSee above\n> and more\nThanks",
    ],
)
def test_what_others_wrote_is_not_the_senders(others: str):
    read_ = mail("Subject: x\r\n", f"Please look\n\n{others}")

    assert "skill" not in read_.text
    assert read_.text.startswith("Please look")
    assert "Create a skill" in read_.quoted


@pytest.mark.parametrize("own", ["a\n-- \nAnn\n+39", "Name: x\nDate: y\nPlace: z", "---\nlist", "a\n- b\n- c"])
def test_what_a_person_wrote_is_all_theirs(own: str):
    read_ = mail("Subject: x\r\n", own)

    assert (read_.text, read_.quoted) == (own, "")


@pytest.mark.parametrize(
    "broken",
    [
        b"Subject: =?nonsense?q?x?=\r\nContent-Type: text/plain; charset=nonsense\r\n",
        b"Content-Type: multipart/mixed; boundary=x\r\n",
        b"Content-Transfer-Encoding: base64\r\n",
        b"Subject: \xff\xfe\r\nDate: never\r\nReferences: <<<>>>\r\n",
        b"Content-Type: application/pdf; name*0*=''%%; name==?x?y?z?=\r\n",
        b"Content-Type: message/rfc822\r\n",
    ],
)
def test_a_broken_mail_is_still_read(broken):
    assert read(b"From: ann@x.test\r\n" + broken + b"\r\n\xff\0Hello", OWN).sender == "ann@x.test"


def test_parts_within_parts_without_end_are_refused():
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n" for n in range(3000))

    with pytest.raises(Unreadable, match="taken apart"):
        read(b"From: ann@x.test\r\n" + deep.encode() + b"\r\nHello", OWN)


@pytest.mark.parametrize(
    "broken",
    [
        b"Content-Type: text/plain; name*=idna''x%ff\r\n\r\nHello",
        b"Content-Type: text/plain; name*=undefined''x%ff\r\n\r\nHello",
        b"Content-Type: text/plain; name*=a\0b''x%ff\r\n\r\nHello",
        b"Content-Type: text/plain; charset*=utf-8''utf-8\r\n\r\n\xffHello",
        b"Content-Type: message/rfc822\r\n\r\n" * 900 + b"Hello",
    ],
)
def test_a_mail_that_the_library_fails_at_is_passed_over_and_holds_no_other_up(broken):
    with pytest.raises(Unreadable, match="taken apart"):
        read(b"From: ann@x.test\r\n" + broken, OWN)


def test_parts_without_end_are_counted():
    parts = "".join(f"--b\r\nContent-Disposition: attachment; filename=f{n}\r\n\r\nx\r\n" for n in range(500))

    read_ = read(f"From: ann@x.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--".encode(), OWN)

    assert len(read_.files) < MOST_PARTS


@pytest.mark.parametrize("text", ["a@b", "a.b+c@d.test"])
def test_an_address_is_plain(text):
    assert is_address(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a@", "a b@c", "a@b@c", "a@b\r\nBcc: c@d", "<a@b>", "a@b,c@d", "a\0b@c", "a@b\x7f"]
)
def test_a_trick_is_no_address(text):
    assert not is_address(text)


@pytest.mark.parametrize("charset", ["undefined", "idna", "hex", "a\0b", "no-such", "unicode_escape", "utf-7"])
def test_an_encoding_that_is_none_leaves_the_words(charset: str):
    found = mail(f'Content-Type: text/plain; charset="{charset}"\r\nSubject: =?{charset}?Q?Hi?=\r\n')

    assert found.text == "Hello"


def test_half_signs_are_made_whole():
    found = mail(
        'Content-Type: text/plain; charset="unicode_escape"\r\nSubject: =?unicode_escape?Q?=5Cud800?=\r\n',
        "a\\ud800b \\ud83d\\ude00",
    )

    assert (found.subject, found.text) == ("\ufffd", "a\ufffdb \N{GRINNING FACE}")


@pytest.mark.parametrize("sender", ["(" * 2000, ":" * 2000, '"' * 5000, "<" * 5000])
def test_a_sender_that_cannot_be_taken_apart_is_no_sender(sender: str):
    with pytest.raises(Unreadable):
        read(f"From: {sender}\r\n\r\nHello".encode(), OWN)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_headers_that_nobody_encoded_are_read_all_the_same(encoding):
    head = "From: Jürgen <a@b.test>\r\nTo: h@own.test\r\nSubject: Grüße aus Köln\r\nMessage-ID: <1@b>\r\n\r\nx"
    found = read(head.encode(encoding), "h@own.test")

    assert (found.name, found.subject, found.sender) == ("Jürgen", "Grüße aus Köln", "a@b.test")


@pytest.mark.parametrize(
    ("said", "encoding"),
    [("; charset=iso-8859-1", "cp1252"), ("; charset=us-ascii", "cp1252"), ("", "cp1252"), ("", "utf-8")],
)
def test_words_are_read_as_windows_writes_them(said, encoding):
    head = f"From: a@b.test\r\nTo: h@own.test\r\nContent-Type: text/plain{said}\r\n\r\n"

    assert read(head.encode() + "für 5 € “so”".encode(encoding), "h@own.test").text == "für 5 € “so”"


OWN = "hermes@agent.test"
HEAD = b"From: Ann <ann@people.test>\r\nTo: hermes@agent.test\r\nMessage-ID: <a@x>\r\n"
PICTURE = base64.encodebytes(bytes(range(256)) * 100)


async def test_a_mail_is_read_as_it_is():
    boundary = (
        b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>H\xc3\xb6\r\n'
    )
    file = b"--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n" + PICTURE + b"\r\n--b--\r\n"
    vouching = b"Authentication-Results: mx.test; dmarc=pass header.from=people.test\r\n"
    raw = HEAD + vouching + boundary + file

    mail = await read_apart(raw, OWN, "mx.test")

    assert mail == read(raw, OWN, "mx.test")
    assert (mail.text, len(mail.files[0].content), mail.vouched) == ("H\u00f6", 25_600, True)
    assert not (await read_apart(raw, OWN, "mx.other")).vouched


async def test_what_is_no_mail_says_why():
    with pytest.raises(Unreadable, match="does not name one sender"):
        await read_apart(b"Subject: x\r\n\r\nHello", OWN)

    assert "sender" in msgspec.msgpack.decode(parsed(b"", OWN, ""), type=str)
    assert msgspec.msgpack.decode(parsed(HEAD, OWN, ""), type=Mail) == read(HEAD, OWN)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "html",
    [
        # Each of 40,000 paragraphs opens 450 elements again.
        "<p>" + "".join(f"<b a{n}>" for n in range(450)) + "</p>" + "<p>x</p>" * 40_000,
        "<style>" + "p~p~p~p~p{display:none}" * 100 + "</style>" + "<p>x" * 100_000,
    ],
    ids=["all memory", "selectors"],
)
async def test_a_mail_that_takes_all_time_or_memory_ends_alone(html: str):
    held = asyncio.create_task(longest_hold())

    with pytest.raises(Unreadable, match="was ended"):
        await read_apart(HEAD + b"Content-Type: text/html\r\n\r\n" + html.encode(), OWN, work=1)

    held.cancel()
    assert await held < 0.5


async def test_where_no_process_can_be_started_a_mail_waits():
    with pytest.raises(NotNow):
        await read_apart(HEAD, "x" * 4_000_000)


async def test_where_the_process_fails_whatever_the_mail_is_a_mail_waits():
    with pytest.raises(NotNow, match="No mail can be read now"):
        await read_apart(HEAD, OWN, by="hermes_agent.gateway.email.nowhere:told")
