"""Search: what was said is found again, whatever a person types."""

import pytest

from hermes_agent.core.events import Entry, MessageTaken, Notice, Replied
from hermes_agent.core.messages import Message, Role, StopReason, Text, Usage, said
from hermes_agent.store.database import Store
from hermes_agent.store.search import EVERYBODY, Scope
from tests.databases import OpenAnother
from tests.store.made import QUEUE, add, session


async def tell(store: Store, name: str, *texts: str, principal: str = "cli:ann", at: float = 0.0) -> None:
    """A session in which these texts were said."""
    await add(store, session(name, principal=principal))
    lease = await store.lanes.hold(name, QUEUE)
    assert lease is not None
    entries = [
        Entry(number=number, run="r", at=at + number, event=MessageTaken(message=said(text)))
        for number, text in enumerate(texts, 1)
    ]
    await store.write(lambda tx: store.history.append(tx, lease, entries))
    await store.lanes.release(lease)


async def found(store: Store, query: str, scope: Scope = EVERYBODY) -> list[tuple[str, int]]:
    return [(hit.session, hit.number) for hit in await store.search.search(query, scope)]


async def test_a_word_is_found_where_it_was_said(store: Store):
    await tell(store, "s1", "the build is broken", "the weather is fine")

    (hit,) = await store.search.search("broken")

    assert (hit.session, hit.number, hit.at, hit.role) == ("s1", 1, 1.0, Role.USER)
    assert hit.snippet == "the build is broken"


async def test_a_word_that_nobody_said_is_not_found(store: Store):
    await tell(store, "s1", "the build is broken")

    assert await found(store, "zeppelin airship") == []


async def test_what_the_model_said_is_found_too_and_notices_are_not(store: Store):
    await add(store, session())
    lease = await store.lanes.hold("s1", QUEUE)
    assert lease is not None
    message = Message(role=Role.ASSISTANT, parts=(Text(text="a marmot"),))
    replied = Replied(
        turn=1,
        call_id="c",
        message=message,
        stop=StopReason.END,
        usage=Usage(),
        provider="p",
        model="m",
        cost=None,
        seconds=1.0,
    )
    events = (replied, Notice(text="a marmot"))
    entries = [Entry(number=number, run="r", at=1.0, event=event) for number, event in enumerate(events, 1)]
    await store.write(lambda tx: store.history.append(tx, lease, entries))

    (hit,) = await store.search.search("marmot")

    assert (hit.number, hit.role) == (1, Role.ASSISTANT)


@pytest.mark.parametrize("query", ["BROKEN", "break", "builds", "broken build", "the build", "Übung", "übung"])
async def test_case_stems_and_order_do_not_matter(store: Store, query: str):
    await tell(store, "s1", "the build is broken because breaks happen; Übung macht den Meister")

    assert await found(store, query) == [("s1", 1)]


@pytest.mark.parametrize(
    "query",
    [
        *(
            '"',
            "'",
            "broken'",
            '"broken',
            "broken AND",
            "NOT broken",
            "NEAR(broken",
            "broken*",
            "^broken",
            "text:broken",
        ),
        *(
            "(broken",
            "-broken",
            "broken;--",
            "{broken}",
            "broken\0",
            "a:* broken",
            "broken | !",
            "$1 broken",
            "?1 broken",
        ),
        *("<-> broken", "\\ broken"),
    ],
)
async def test_no_punctuation_is_an_error(store: Store, query: str):
    await tell(store, "s1", "it is broken")

    assert await found(store, query) in ([("s1", 1)], [])
    assert ("broken" in query) is bool(await found(store, query))


@pytest.mark.parametrize("query", ["", "   ", '""', "!!! ???", "…"])
async def test_a_query_without_words_finds_nothing(store: Store, query: str):
    await tell(store, "s1", "something")

    assert await found(store, query) == []


async def test_messages_with_more_of_the_words_come_first(store: Store):
    await tell(store, "s1", "red apple", "green apple", "red car", "a yellow bus")

    assert (await found(store, "red apple"))[0] == ("s1", 1)
    assert sorted(await found(store, "red apple")) == [("s1", 1), ("s1", 2), ("s1", 3)]
    assert sorted(await found(store, "red zebra")) == [("s1", 1), ("s1", 3)]


async def test_a_quoted_phrase_is_found_as_a_whole(store: Store):
    await tell(store, "s1", "the big red dog", "the red big dog")

    assert await found(store, '"big red"') == [("s1", 1)]


@pytest.mark.parametrize("query", ["数据库", "数据", "データベース", "베이스"])
async def test_scripts_without_spaces_are_searched_by_their_parts(store: Store, query: str):
    await tell(
        store, "s1", "我们的数据库坏了", "データベースが壊れた", "데이터베이스가 고장났다", "據數 something else"
    )

    assert len(await found(store, query)) == 1


async def test_one_principal_finds_only_their_own(store: Store):
    await tell(store, "s1", "the secret word", principal="cli:ann")
    await tell(store, "s2", "the secret word", principal="cli:bob")

    assert await found(store, "secret", Scope(principal="cli:bob")) == [("s2", 1)]
    assert len(await found(store, "secret")) == 2


async def test_a_deleted_session_is_not_found(store: Store):
    await tell(store, "s1", "the secret word")
    await tell(store, "s2", "the secret word")
    assert len(await found(store, "secret")) == 2

    await store.sessions.delete("s1")

    assert await found(store, "secret") == [("s2", 1)]


async def test_what_is_said_later_is_found_later(store: Store, open_another: OpenAnother):
    other = await open_another()
    await tell(store, "s1", "first word")
    assert await found(other, "word") == [("s1", 1)]

    await tell(store, "s2", "second word")

    assert len(await found(other, "word")) == 2
    assert len(await found(store, "word")) == 2


async def test_catching_up_reads_each_entry_once(store: Store):
    await tell(store, "s1", *(f"text {number}" for number in range(1200)))

    assert await store.search.catch_up() == 1200
    assert await store.search.catch_up() == 0
    assert await found(store, "1199") == [("s1", 1200)]


async def test_a_limit_is_kept(store: Store):
    await tell(store, "s1", *("same word" for _ in range(30)))

    assert len(await store.search.search("word", limit=7)) == 7


async def test_a_session_is_found_with_its_best_messages(store: Store):
    await tell(store, "s1", "the kettle is red", "tea?", "kettle kettle", "coffee")
    await tell(store, "s2", "a tea house", "no tea")

    (first,) = await store.search.discover("kettle", each=1)

    assert (first.session, [hit.number for hit in first.hits]) == ("s1", [3])
    assert [each.session for each in await store.search.discover("tea")] == ["s2", "s1"]


async def test_what_is_excluded_is_left_out_and_the_rest_of_its_session_is_not(store: Store):
    await tell(store, "s1", "a kettle for tea", "a red kettle")

    assert await found(store, "kettle -tea") == [("s1", 2)]
    assert await found(store, '"kettle red" -tea') == [("s1", 2)]


async def test_other_sessions_answer_where_every_message_of_the_best_is_excluded(store: Store):
    for number in range(14):
        await tell(store, f"s{number}", "kettle kettle for tea", "hm")
    await tell(store, "t", "some words more about one kettle and others")

    assert ("t", 1) in await found(store, "kettle -tea")


async def test_a_beginning_is_found_where_no_whole_word_is(store: Store):
    await tell(store, "s1", "the zeppelin rose")

    assert await found(store, "zepp") == [("s1", 1)]


async def test_the_words_of_a_phrase_are_found_apart_where_nobody_said_it(store: Store):
    await tell(store, "s1", "red and big")

    assert await found(store, '"big red"') == [("s1", 1)]


async def test_a_phrase_over_the_end_of_a_message_is_none(store: Store):
    await tell(store, "s1", "it is big", "red it is", "unrelated")
    await tell(store, "s2", "the big red one")

    assert await found(store, '"big red"') == [("s2", 1)]


async def test_a_date_alone_finds_what_was_said_then(store: Store):
    await tell(store, "s1", "about May", at=1_683_500_000)
    await tell(store, "s2", "about June", at=1_687_000_000)

    assert await found(store, "2023-06") == [("s2", 1)]


async def test_a_date_puts_its_sessions_first(store: Store):
    await tell(store, "s1", "the camping trip", at=1_683_500_000)
    await tell(store, "s2", "the camping trip", at=1_687_000_000)

    assert [each.session for each in await store.search.discover("camping in June 2023")] == ["s2", "s1"]
    assert [each.session for each in await store.search.discover("camping in May 2023")] == ["s1", "s2"]


@pytest.mark.parametrize("query", ["数据", "据库", "タベ", "ース", "이터", "장났", "ข้"])
async def test_any_two_characters_that_follow_each_other_are_found(store: Store, query: str):
    await tell(store, "s1", "我们的数据库坏了", "データベースが壊れた", "데이터베이스가 고장났다", "ข้อมูล", "else")

    assert len(await found(store, query)) == 1


async def test_an_emoji_is_found(store: Store):
    await tell(store, "s1", "done 🎉", "not yet")

    assert await found(store, "🎉") == [("s1", 1)]


async def test_a_query_of_ten_thousand_characters_finds_what_its_last_word_names(store: Store):
    await tell(store, "s1", "a marmot", "else")

    query = " ".join(f"word{number}" for number in range(1300)) + " marmot"

    assert len(query) > 10_000
    assert await found(store, query) == [("s1", 1)]


async def test_a_session_that_grows_is_found_by_all_its_words(store: Store):
    await tell(store, "s1", "first apple")
    assert await found(store, "apple") == [("s1", 1)]
    lease = await store.lanes.hold("s1", QUEUE)
    assert lease is not None
    for number in range(2, 90):
        entry = Entry(number=number, run="r", at=1.0, event=MessageTaken(message=said(f"pear{number}")))
        await store.write(lambda tx, entry=entry: store.history.append(tx, lease, [entry]))
        assert await found(store, f"pear{number}") == [("s1", number)]

    assert sorted(await found(store, "apple pear50")) == [("s1", 1), ("s1", 50)]


async def test_one_conversation_finds_only_its_own(store: Store):
    await tell(store, "s1", "the secret word")

    assert await found(store, "secret", Scope(conversation="cli:dm:s1")) == [("s1", 1)]
    assert await found(store, "secret", Scope(conversation="elsewhere:group:1")) == []


async def test_a_page_of_a_session_is_read_around_a_message(store: Store):
    await tell(store, "s1", *(f"text {number}" for number in range(1, 10)))

    page = await store.search.read("s1", 5, 2, 3)

    assert [(each.number, each.text) for each in page] == [(n, f"text {n}") for n in (3, 4, 5, 6, 7)]


async def test_the_latest_sessions_are_listed(store: Store):
    await tell(store, "s1", "a")
    await tell(store, "s2", "b", principal="cli:bob")

    assert set(await store.search.recent()) == {"s1", "s2"}
    assert await store.search.recent(Scope(principal="cli:bob")) == ["s2"]
