"""A platform's double does what was ordered, and shows what it was told."""

from hermes_agent.testing.platform import Chats, Held, Shown, Trouble


def test_an_order_strikes_once_and_the_call_it_names() -> None:
    chats = Chats()
    chats.order(Trouble.BUSY, "send", times=2)

    assert chats.trouble("edit") is None
    assert [chats.trouble("send") for _ in range(3)] == [Trouble.BUSY, Trouble.BUSY, None]
    assert chats.calls == {"edit": 1, "send": 3}


def test_the_same_key_shows_nothing_twice() -> None:
    chats = Chats()
    first = chats.show(Shown(id=chats.next_id(), chat="1", text="a", key="k"))

    assert chats.show(Shown(id=chats.next_id(), chat="1", text="a", key="k")) == first
    assert chats.of("1") == [first]


def test_only_what_is_there_is_changed() -> None:
    chats = Chats()
    shown = chats.show(Shown(id=chats.next_id(), chat="1", text="a"))

    assert not chats.change("404", "b")
    assert chats.change(shown.id, "b")
    assert [(each.text, each.edits) for each in chats.of("1")] == [("b", 1)]


async def test_what_is_said_meanwhile_is_told_after_what_was_said_since():
    held, told = Held(), []

    async def later() -> None:
        told.append("one")

    held.holding = True
    await held.tells(later)
    await held.tells(lambda: told.append("two"))
    held.holding = False
    await held.tells(lambda: told.append("three"))
    await held.tell_late()

    assert told == ["three", "one", "two"]
