"""Which pictures and documents a model is shown."""

import base64

import pytest

from hermes_agent.core.messages import File, Image, Message, Role, Text, ToolCall, ToolResult, said
from hermes_agent.providers.sight import PictureRules, Sight
from hermes_agent.providers.verifier import Transcript
from tests.providers.asking import PIXEL

FEW = Sight(rules=PictureRules(largest=1_000, most=4))
PICTURE = Image(data=PIXEL)


def shown(messages: list[Message], sight: Sight) -> list[str]:
    transcript = Transcript(maker="vendor/model", sight=sight)
    transcript.follow(messages)
    parts = (part for turn in transcript.turns for part in (*turn.parts, *(p for r in turn.results for p in r.parts)))
    return [part.text if isinstance(part, Text) else part.kind for part in parts]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Image(data=PIXEL, media_type="image/svg+xml"), "image"),
        (Image(data="PHN2Zz4=", media_type="image/svg+xml"), "of a kind that this model cannot see"),
        (Image(data="iVBORw0KGgo" + "A" * 4_000), "0.0 MB, which is more"),
        (Image(url="https://example.org/a.svg"), "image"),
        (File(name="a.pdf", media_type="application/pdf", data="aGk="), "file"),
    ],
)
def test_a_picture_that_a_dialect_refuses_becomes_words_that_say_why(part: Image | File, told: str):
    (only,) = shown([Message(role=Role.USER, parts=(part,))], FEW)
    assert told in only


def test_a_model_that_reads_no_documents_is_told_of_them_and_reads_text():
    blind = Sight(files=False)
    text = File(name="a.md", media_type="text/markdown", data=base64.b64encode(b"hi").decode())
    document = File(name="a.pdf", media_type="application/pdf", data="aGk=")
    assert shown([Message(role=Role.USER, parts=(text, document))], blind) == [
        "file",
        "[A document, a.pdf (application/pdf), that this model cannot read.]",
    ]


def test_a_picture_goes_under_the_type_that_its_bytes_have():
    part = FEW.shown(Image(data=PIXEL, media_type="image/jpeg"))
    assert part == Image(data=PIXEL, media_type="image/png")


def test_of_too_many_pictures_the_first_are_left_out_half_of_the_limit_at_a_time():
    for count, kept in ((4, 4), (5, 3), (6, 4), (7, 3), (9, 3)):
        messages = [Message(role=Role.USER, parts=(PICTURE,))] * count
        kinds = shown(messages, FEW)
        assert (len(kinds), kinds.count("image")) == (count, kept)
        assert all("earlier picture" in kind for kind in kinds[: count - kept])


def test_pictures_of_tools_count_and_growing_is_like_beginning_anew():
    messages: list[Message] = [said("go")]
    transcript = Transcript(maker="vendor/model", sight=FEW)
    for place in range(9):
        call = ToolCall(id=f"c{place}", name="read", arguments={})
        answer = ToolResult(call_id=call.id, name="read", parts=(PICTURE,))
        messages += [Message(role=Role.ASSISTANT, parts=(call,)), Message(role=Role.TOOL, parts=(answer,))]
        transcript.follow(messages)
        fresh = Transcript(maker="vendor/model", sight=FEW)
        fresh.follow(messages)
        assert transcript.turns == fresh.turns
    assert shown(messages, FEW).count("image") == 3


def test_what_is_stored_is_not_changed():
    wrong = Image(data=PIXEL, media_type="image/jpeg")
    messages = [Message(role=Role.USER, parts=(wrong, *[PICTURE] * 9))]
    shown(messages, FEW)
    assert messages[0].parts[0] is wrong
    assert wrong.media_type == "image/jpeg"
