"""What was encoded stays encoded."""

from hermes_agent.core.messages import Image, Message, Role, Text, said
from hermes_agent.providers.pieces import IMAGE_TOKENS
from hermes_agent.providers.turn_cache import TurnCache
from hermes_agent.providers.verifier import Turn
from tests.providers.asking import route_to


def counting() -> tuple[TurnCache, list[Turn]]:
    written: list[Turn] = []

    def write(turn: Turn) -> bytes:
        written.append(turn)
        return "|".join(part.text for part in turn.parts if isinstance(part, Text)).encode()

    return TurnCache(route_to("openai/gpt-5.2"), write), written


def replied(text: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=(Text(text=text),))


def test_only_new_turns_are_encoded():
    kept, written = counting()
    messages = [said("one"), replied("two"), said("three")]
    assert kept.follow(messages)[0] == [b"one", b"two", b"three"]
    messages += [replied("four"), said("five")]
    assert kept.follow(messages)[0] == [b"one", b"two", b"three", b"four", b"five"]
    assert len(written) == 5


def test_a_turn_that_grew_is_encoded_again_and_its_neighbours_are_not():
    kept, written = counting()
    messages = [said("one"), replied("two"), said("three")]
    kept.follow(messages)
    messages.append(said("and more"))
    assert kept.follow(messages)[0][-1] == b"three|and more"
    assert len(written) == 4


def test_the_ending_that_was_answered_stays_where_it_was():
    kept, _ = counting()
    messages = [said("one"), replied("half")]
    assert kept.follow(messages)[0][-1] == b"Continue."
    messages.append(replied(" whole"))
    assert kept.follow(messages)[0][:4] == [b"one", b"half", b"Continue.", b" whole"]


def test_size_is_bytes_by_four_and_a_flat_figure_for_pictures():
    kept, _ = counting()
    picture = Image(data="x" * 40_000)
    _, tokens = kept.follow([Message(role=Role.USER, parts=(Text(text="w" * 400), picture))])
    assert IMAGE_TOKENS <= tokens <= IMAGE_TOKENS + 100
