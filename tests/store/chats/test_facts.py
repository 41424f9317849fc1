"""Facts of a chat are set, read and taken away."""

from hermes_agent.store.database import Store


async def test_what_is_set_for_a_chat_is_its_own(store: Store):
    await store.facts.set("telegram:dm:1", "topic", "work")
    await store.facts.set("telegram:dm:1", "topic", "play")
    await store.facts.set("telegram:dm:2", "topic", "other")

    assert await store.facts.of("telegram:dm:1") == {"topic": "play"}
    await store.facts.set("telegram:dm:1", "topic", "")
    assert await store.facts.of("telegram:dm:1") == {}


async def test_what_is_set_first_stays(store: Store):
    await store.facts.set("telegram:dm:1", "topic", "work", first=True)
    await store.facts.set("telegram:dm:1", "topic", "play", first=True)

    assert await store.facts.of("telegram:dm:1") == {"topic": "work"}
