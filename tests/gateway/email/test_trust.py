"""Automatic mail is told from a person's, and a forged sender from one that the own server vouches for."""

from email import message_from_string

import pytest

from hermes_agent.gateway.email.trust import automatic, vouched


def said(headers: str, sender: str = "ann@people.test") -> str:
    return automatic(message_from_string(f"{headers}\n\nbody"), sender)


@pytest.mark.parametrize(
    "headers",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated; owner-email=x",
        "Precedence: bulk",
        "Precedence: LIST",
        "List-Id: <a.b>",
        "List-Unsubscribe: <mailto:x@y>",
        "X-Autoreply: yes",
        "X-Auto-Response-Suppress: All",
        "X-Auto-Response-Suppress: OOF, all",
        "Return-Path: <>",
        "Content-Type: multipart/report; boundary=x",
    ],
)
def test_what_a_program_sends_by_itself_is_not_a_persons(headers):
    assert said(headers)


@pytest.mark.parametrize("sender", ["MAILER-DAEMON@x.test", "postmaster@x.test", "no-reply@x.test"])
def test_an_address_that_nobody_reads_is_not_a_persons(sender):
    assert said("Subject: x", sender.lower())


@pytest.mark.parametrize(
    "header", ["Feedback-ID: i56a14606:Fastmail", "X-Auto-Response-Suppress: DR, RN, NRN, OOF, AutoReply"]
)
def test_what_a_provider_notes_for_itself_in_peoples_mail_makes_it_no_machines(header):
    """Fastmail and Zoho put the one into every mail that somebody sends, organisations with Exchange the other."""
    assert said(header) == ""


def test_a_persons_mail_is_one():
    assert said("Auto-Submitted: no\nPrecedence: normal\nReturn-Path: <ann@people.test>") == ""


def results(*lines: str, server: str = "mx.own.test", domain: str = "people.test") -> bool:
    headers = "".join(f"Authentication-Results: {line}\n" for line in lines)
    return vouched(message_from_string(f"{headers}\nbody"), server, domain)


@pytest.mark.parametrize(
    "line",
    [
        "mx.own.test; dmarc=pass (p=REJECT) header.from=people.test",
        "mx.own.test 1; dkim=pass (2048-bit key) header.d=people.test header.s=s1",
        "mx.own.test; dkim=pass header.i=@people.test",
        'mx.own.test; dmarc=pass reason="so; it is" (a (comment; in one) \\) of it) header.from="people.test"',
        "mx.own.test; spf=fail smtp.mailfrom=x@y.test; dkim=fail header.d=z.test; spf=pass smtp.mailfrom=a@people.test",
    ],
)
def test_the_own_server_vouches_for_a_sender(line):
    assert results(line)


@pytest.mark.parametrize(
    "line",
    [
        "mx.own.test; dmarc=fail header.from=people.test",
        "mx.own.test; dmarc=pass header.from=evil.test",
        "mx.own.test; dkim=pass header.d=evil.test",
        "mx.own.test; dkim=pass header.d=test",
        "mx.own.test; spf=pass smtp.mailfrom=ann@evilpeople.test",
        "mx.own.test; arc=pass header.d=people.test",
        "mx.own.test; none",
        "mx.own.test",
        "mx.evil.test; dmarc=pass header.from=people.test",
        "",
        'mx.own.test; spf=pass smtp.mailfrom="x; dmarc=pass header.from=people.test "@evil.test; dmarc=fail',
        'mx.own.test; spf=pass smtp.mailfrom="x smtp.mailfrom=ann@people.test"@evil.test',
        'mx.own.test; dkim=pass header.i="@people.test"@evil.test',
        'mx.own.test; spf=pass (of "a) ; dmarc=pass header.from=people.test ("@evil.test) smtp.mailfrom=evil.test',
        "mx.own.test; spf=pass (a \\) ; dmarc=pass header.from=people.test) smtp.mailfrom=evil.test",
    ],
)
def test_nothing_else_is_a_voucher(line):
    assert not results(line)


def test_a_domain_above_signs_for_those_below():
    assert results("mx.own.test; dkim=pass header.d=people.test", domain="mail.people.test")


def test_what_came_with_the_mail_does_not_count_below_the_servers_own_word():
    assert not results(
        "mx.own.test; dmarc=fail header.from=people.test", "mx.own.test; dmarc=pass header.from=people.test"
    )


@pytest.mark.parametrize("broken", ['spf=pass smtp.mailfrom="x', "spf=pass (x", "spf=pass x)"])
def test_a_word_of_the_server_that_a_sender_could_break_lets_nothing_below_it_count(broken):
    assert not results(f"mx.own.test; {broken}", "mx.own.test; dmarc=pass header.from=people.test")
