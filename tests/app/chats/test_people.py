"""What somebody is, by their key: at once, and by the rules that hold now."""

from hermes_agent.app.chats.people import REMEMBERED, People
from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.core.chat import Standing
from hermes_agent.store.database import open_store


def test_a_principal_is_what_the_rules_say_now():
    people = People({"p": ChannelSettings(owners=("1",), members=("a:b",), guests=("3",))})

    assert people.standing("p:1") is Standing.OWNER
    assert people.standing("p:a:b") is Standing.MEMBER
    assert people.standing("p:3") is people.standing("p:9") is Standing.GUEST
    assert people.standing("q:1") is None
    assert people.otherwise(lambda _: Standing.OWNER)("cli:me") is Standing.OWNER

    people.channels = {"p": ChannelSettings()}
    assert people.standing("p:1") is Standing.GUEST


def test_who_is_known_by_a_group_alone_is_remembered_for_a_while():
    people = People({"p": ChannelSettings()})
    for user in range(REMEMBERED + 1):
        people.remember(f"p:{user}", Standing.MEMBER)

    assert people.standing(f"p:{REMEMBERED}") is Standing.MEMBER
    assert people.standing("p:0") is Standing.GUEST


async def test_who_was_let_in_is_a_member(tmp_path):
    store = await open_store(tmp_path / "hermes.db")
    people = People({"p": ChannelSettings()})
    await store.pairing.approve(await store.pairing.ask("p", "5", "Ann"))

    await people.meet(store)
    assert people.standing("p:5") is Standing.MEMBER

    await store.pairing.revoke("p", "5")
    await people.meet(store)
    assert people.standing("p:5") is Standing.GUEST
    await store.close()
