"""Schemas that are made of records: their fields, types and words."""

import msgspec

from hermes_agent.api.response_schemas import ModelFacts, list_of, part_of
from hermes_agent.core.chat import Conversation


def test_a_list_has_its_objects_and_says_that_it_is_one():
    schema = list_of("Models", ModelFacts, "Names of models.")

    made = msgspec.json.decode(msgspec.json.encode(schema(data=[ModelFacts(id="m")])))

    assert (made["object"], made["data"][0]["id"]) == ("list", "m")
    assert (schema.__name__, schema.__doc__) == ("Models", "Names of models.")


def test_a_part_of_a_record_has_its_types_and_leaves_the_rest_out():
    schema = part_of(Conversation, "Where", "platform chat", "A place.", object=(str, "place"))

    made = msgspec.convert(Conversation(platform="x", chat="7", thread="9"), schema, from_attributes=True)

    assert msgspec.to_builtins(made) == {"platform": "x", "chat": "7", "object": "place"}
    assert schema.__annotations__["chat"] is str
