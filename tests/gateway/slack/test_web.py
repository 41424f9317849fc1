"""Each error of Slack has a meaning."""

import pytest

from hermes_agent.gateway.channel import MessageGone, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.service import Service
from hermes_agent.gateway.slack.web import Web, form, meaning
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("token_revoked", TokenRefused),
        ("ratelimited", NotNow),
        ("internal_error", OutcomeUnknown),
        ("message_not_found", MessageGone),
        ("channel_not_found", NeverHere),
        ("something_new", NeverHere),
    ],
)
def test_an_error_means(name, kind):
    assert isinstance(meaning(name, {}), kind)


def test_arguments_are_a_form():
    assert (
        form({"text": "a&b", "blocks": [], "limit": 2, "all": True, "ts": None})
        == b"text=a%26b&blocks=%5B%5D&limit=2&all=true"
    )


def test_a_missing_scope_is_named():
    assert "files:write" in str(meaning("missing_scope", {"needed": "files:write"}))


def test_a_failed_question_is_asked_again():
    assert isinstance(meaning("fatal_error", {}, reads=True), NotNow)


@pytest.mark.parametrize(("status", "kind"), [(413, NeverHere), (403, NeverHere), (408, NotNow), (503, NotNow)])
async def test_a_file_that_the_upload_refuses_for_good_is_not_tried_for_a_day(status, kind):
    async def refuse(_: Request) -> Response:
        return Response(status=status)

    async with serve(refuse) as server:
        http = Http()
        with pytest.raises(kind):
            await Web(Service(title="Slack", http=http), server.url).upload(f"{server.url}/x", b"content")
        await http.close()
