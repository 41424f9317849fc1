"""Conversations as text: pages of a session, and whose sessions one may see."""

from hermes_agent.memory.conversations import Conversations
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from tests.store.made import add
from tests.store.test_search import tell

ANN = "cli:ann"


async def group(store: Store, name: str) -> None:
    """An empty session of a group in which Ann spoke first."""
    record = Session(id=name, principal=ANN, conversation="chat:group:7", surface="chat", created=1.0, updated=1.0)
    await add(store, record)


async def test_in_a_group_nobodys_private_conversations_are_shown(store: Store):
    await tell(store, "private", "my salary")
    await group(store, "group")

    listed = await Conversations(store, "group", ANN).browse(5)

    assert "session group (this conversation)" in listed
    assert "private" not in listed
    assert "my salary" not in await Conversations(store, "group", ANN).discover("salary", 5)


async def test_in_a_folder_all_conversations_of_the_one_who_speaks_are_shown(store: Store):
    await tell(store, "private", "my salary")
    record = Session(id="here", principal=ANN, conversation="cli:folder:/a", surface="cli", created=1.0, updated=1.0)
    await add(store, record)

    assert "private" in await Conversations(store, "here", ANN).discover("salary", 5)
    assert "private" not in await Conversations(store, "here", "cli:bob").discover("salary", 5)


async def test_in_a_group_kept_for_each_person_no_private_conversation_is_shown(store: Store):
    await tell(store, "private", "my salary")
    record = Session(
        id="here", principal=ANN, conversation="chat:group:7::cli%3Aann", surface="chat", created=1.0, updated=1.0
    )
    await add(store, record)

    assert "private" not in await Conversations(store, "here", ANN).discover("salary", 5)


async def test_somebody_else_who_speaks_in_a_private_conversation_sees_that_one_alone(store: Store):
    await tell(store, "private", "my salary")
    await tell(store, "here", "hello")

    assert "private" in await Conversations(store, "here", ANN).browse(5)
    assert "private" in await Conversations(store, "here", "").browse(5)
    assert "private" not in await Conversations(store, "here", "cli:bob").browse(5)


async def test_a_page_begins_a_little_before_the_message_asked_for(store: Store):
    await tell(store, "here", *(f"text {number}" for number in range(1, 21)))

    page = await Conversations(store, "here", ANN).read("here", 10)

    assert page.splitlines()[1].startswith("#7 ")
    assert page.endswith("The end.")
