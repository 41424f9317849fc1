"""What goes out in place of something that cannot be shown."""

from hermes_agent.core.chat import TOLD, Conversation, lost


def test_what_is_lost_is_told_in_its_place_and_tells_of_nothing_further():
    place = Conversation(platform="telegram", chat="7")

    letter = lost(3, place, "it cannot be read")

    assert letter.to == place
    assert letter.content.text.startswith("I could not deliver a message here: it cannot be read.")
    assert letter.key.startswith(TOLD)
    assert letter.key != lost(4, place, "").key
