"""Refusals read out of whatever body they come in."""

import json

import pytest

from hermes_agent.core.errors import ContextTooLong, OutOfCredit, RateLimited, ServerFailed, ThinkingRefused
from hermes_agent.providers.outcomes import OPENAI_ERRORS, SHOWN, refused, retry_after
from tests.providers.asking import route_to

ROUTE = route_to("openai/gpt-5.2")
NOON = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


def outcome(status: int, body: bytes):
    return refused(ROUTE, OPENAI_ERRORS, status, {}, body, now=0.0)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 10.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_a_retry_after_is_seconds_milliseconds_or_a_date(headers: dict[str, str], seconds: float | None):
    assert retry_after(headers, now=NOON - 10) == seconds


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "boom", "type": "x"}}',
        b'{"error": "boom"}',
        b'{"message": "boom"}',
        b'{"detail": "boom"}',
        b'[{"error": {"message": "boom"}}]',
        b"boom",
        b'{"error": {"message": "boom", "code": 500}}',
    ],
)
def test_the_reason_is_found_in_every_shape_of_body(body: bytes):
    error = outcome(500, body)
    assert type(error) is ServerFailed
    assert "boom" in str(error)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff\xfe", b"3", b'{"error": 3}', b"null"])
def test_a_body_without_a_reason_is_still_an_outcome(body: bytes):
    assert type(outcome(500, body)) is ServerFailed


def test_a_code_says_more_than_the_status():
    assert type(outcome(429, b'{"error": {"message": "m", "code": "insufficient_quota"}}')) is OutOfCredit
    assert type(outcome(429, b'{"error": {"message": "m", "code": "other"}}')) is RateLimited
    assert type(outcome(400, b'{"error": {"message": "m", "code": "context_length_exceeded"}}')) is ContextTooLong


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest message cannot be modified",
        "The encrypted content gAAA...DQ== could not be verified.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Thought signature is not valid.",
        "Function call is missing a thought_signature in functionCall parts.",
    ],
)
def test_thinking_that_is_not_taken_back_is_its_own_outcome(words: str):
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    assert type(outcome(400, body)) is ThinkingRefused


def test_a_key_that_the_provider_repeats_is_hidden_and_a_long_reason_is_cut():
    error = str(outcome(401, b'{"error": "wrong key test-key ' + b"x" * 5_000 + b'"}'))
    assert "test-key" not in error
    assert len(error) < SHOWN + 200
