"""Any history becomes a conversation that a provider takes; the messages stay as they are."""

import base64
import copy

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.messages import File, Image, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, said
from hermes_agent.providers.verifier import NO_RESULT, PictureRules, Sight, Transcript, Turn
from tests.providers.asking import PIXEL

MAKER = "vendor/model"
IDS = st.sampled_from(["a", "b", "c", "d"])
TEXTS = st.builds(lambda text: Text(text=text), st.sampled_from(["", "  ", "word", "more"]))
THOUGHTS = st.builds(
    lambda maker: Thinking(text="hm", opaque="s", maker=maker), st.sampled_from([MAKER, "other/model"])
)
CALLS = st.builds(lambda id_: ToolCall(id=id_, name="read", arguments={}), IDS)
RESULTS = st.builds(lambda id_: ToolResult(call_id=id_, name="read", parts=(Text(text="r"),)), IDS)
MESSAGES = st.lists(
    st.builds(
        lambda role, parts: Message(role=role, parts=tuple(parts)),
        st.just(Role.ASSISTANT),
        st.lists(TEXTS | THOUGHTS | CALLS, max_size=3, unique_by=lambda part: getattr(part, "id", id(part))),
    )
    | st.builds(lambda parts: Message(role=Role.USER, parts=tuple(parts)), st.lists(TEXTS, max_size=2))
    | st.builds(lambda part: Message(role=Role.TOOL, parts=(part,)), RESULTS),
    max_size=12,
)


def verified(messages: list[Message], *, images: bool = True) -> list[Turn]:
    transcript = Transcript(maker=MAKER, sight=Sight(images=images))
    transcript.follow(messages)
    keep, ending = transcript.ending()
    return [*transcript.turns[:keep], *ending]


def of(role: Role, *parts: Part) -> Message:
    return Message(role=role, parts=parts)


@given(MESSAGES)
def test_turns_alternate_begin_and_end_with_the_user_and_none_is_empty(messages: list[Message]):
    turns = verified(messages)
    assert [turn.role for turn in turns] == [(Role.USER, Role.ASSISTANT)[place % 2] for place in range(len(turns))]
    assert len(turns) % 2 == 1
    assert all(turn.parts or turn.results for turn in turns)


@given(MESSAGES)
def test_every_call_is_answered_exactly_once_in_the_next_turn_and_nothing_else_is(messages: list[Message]):
    turns = verified(messages)
    assert not turns[0].results
    for turn, following in zip(turns[1::2], turns[2::2], strict=True):
        calls = sorted(part.id for part in turn.parts if isinstance(part, ToolCall))
        assert sorted(result.call_id for result in following.results) == calls


@given(MESSAGES)
def test_no_words_are_lost_and_no_foreign_thinking_is_sent(messages: list[Message]):
    turns = verified(messages)
    parts = [part for turn in turns for part in turn.parts]
    said_words = sum(
        part.text.strip() in {"word", "more"} for m in messages for part in m.parts if isinstance(part, Text)
    )
    assert sum(isinstance(part, Text) and part.text in {"word", "more"} for part in parts) == said_words
    assert all(part.maker == MAKER for part in parts if isinstance(part, Thinking))
    assert all(part.text.strip() for part in parts if isinstance(part, Text))


@given(MESSAGES, st.data())
def test_following_step_by_step_ends_like_following_at_once(messages: list[Message], data: st.DataObject):
    transcript = Transcript(maker=MAKER)
    frozen: dict[int, Turn] = {}
    for upto in [*sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=4))), len(messages)]:
        transcript.follow(messages[:upto])
        for place in range(transcript.fresh):
            assert frozen[place] == transcript.turns[place], "changed without being fresh"
        transcript.mark_written()
        frozen = {place: copy.deepcopy(turn) for place, turn in enumerate(transcript.turns)}
    keep, ending = transcript.ending()
    assert [*transcript.turns[:keep], *ending] == verified(messages)


@given(MESSAGES)
def test_the_messages_stay_as_they_are(messages: list[Message]):
    before = copy.deepcopy(messages)
    verified(messages)
    assert messages == before


def test_an_id_that_was_used_before_becomes_another_one_in_call_and_result():
    call = ToolCall(id="a", name="read", arguments={})
    answers = [ToolResult(call_id="a", name="read", parts=(Text(text=text),)) for text in "xy"]
    messages = [said("go"), of(Role.ASSISTANT, call), of(Role.TOOL, answers[0])]
    messages += [of(Role.ASSISTANT, call, call), of(Role.TOOL, answers[1])]
    turns = verified(messages)
    ids = [part.id for turn in turns for part in turn.parts if isinstance(part, ToolCall)]
    told = {result.call_id: result.text for turn in turns for result in turn.results}
    assert len(set(ids)) == len(ids) == 3
    assert [told[id_] for id_ in ids] == ["x", "y", NO_RESULT]


def test_a_steered_turn_waits_until_the_results_are_there():
    call = ToolCall(id="a", name="read", arguments={})
    late = ToolResult(call_id="a", name="read", parts=(Text(text="late"),))
    messages = [said("go"), of(Role.ASSISTANT, call), said("steer"), of(Role.TOOL, late)]
    assert verified(messages)[2] == Turn(role=Role.USER, results=[late], parts=[*said("steer").parts])


def test_an_interrupted_call_gets_a_result_that_says_so():
    messages = [said("go"), of(Role.ASSISTANT, ToolCall(id="a", name="read", arguments={})), said("and now?")]
    (answer,) = verified(messages)[2].results
    assert (answer.call_id, answer.is_error, answer.text) == ("a", True, NO_RESULT)


def test_a_real_result_that_comes_later_replaces_the_missing_one():
    call = ToolCall(id="a", name="read", arguments={})
    real = ToolResult(call_id="a", name="read", parts=(Text(text="real"),))
    messages = [said("go"), of(Role.ASSISTANT, call)]
    transcript = Transcript(maker=MAKER)
    transcript.follow(messages)
    assert transcript.ending()[1][0].results[0].text == NO_RESULT
    transcript.mark_written()
    messages.append(of(Role.TOOL, real))
    transcript.follow(messages)
    assert transcript.ending() == (3, [])
    assert transcript.turns[2].results == [real]


def test_a_conversation_that_was_taken_back_is_read_anew():
    transcript = Transcript(maker=MAKER)
    transcript.follow([said("one"), said("two")])
    transcript.mark_written()
    transcript.follow([said("other")])
    assert (transcript.fresh, transcript.turns) == (0, [Turn(role=Role.USER, parts=[*said("other").parts])])


def test_thinking_that_was_refused_is_left_out_and_later_thinking_is_not():
    def thought(opaque: str) -> Thinking:
        return Thinking(text="hm", opaque=opaque, maker=MAKER)

    transcript = Transcript(maker=MAKER)
    messages = [said("go"), of(Role.ASSISTANT, thought("old"), Text(text="a")), said("on")]
    transcript.follow(messages)
    transcript.forget()
    messages += [of(Role.ASSISTANT, thought("new"), Text(text="b")), said("end")]
    transcript.follow(messages)
    kept = [part.opaque for turn in transcript.turns for part in turn.parts if isinstance(part, Thinking)]
    assert kept == ["new"]


def test_a_model_without_eyes_is_told_of_the_picture():
    seen = verified([of(Role.USER, Text(text="look"), Image(data="aGk="))], images=False)
    assert [part.kind for part in seen[0].parts] == ["text", "text"]
    assert "cannot see" in seen[0].parts[1].text


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
