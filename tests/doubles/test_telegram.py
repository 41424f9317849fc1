"""The double of Telegram as another program knows the Bot API: python-telegram-bot talks to it."""

from collections.abc import AsyncIterator

import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.constants import ParseMode
from telegram.error import BadRequest, ChatMigrated, Conflict, InvalidToken, RetryAfter

from hermes_agent.testing.platform import Trouble
from tests.doubles.telegram import TOKEN, TelegramDouble, telegram
from tests.doubles.telegram_words import Refused, unformatted


@pytest.fixture
async def double() -> AsyncIterator[TelegramDouble]:
    async with telegram() as made:
        yield made


@pytest.fixture
async def bot(double: TelegramDouble) -> AsyncIterator[Bot]:
    async with Bot(TOKEN, base_url=f"{double.url}/bot", base_file_url=f"{double.url}/file/bot") as bot:
        yield bot


async def test_updates_are_told_until_they_are_confirmed(double: TelegramDouble, bot: Bot):
    await double.say("Hi", chat="7")
    (update,) = await bot.get_updates(timeout=1)
    assert (update.message.text, update.message.chat.id) == ("Hi", 7)
    assert len(await bot.get_updates(timeout=0)) == 1

    assert await bot.get_updates(offset=update.update_id + 1, timeout=0) == ()
    assert double.received() == 1


async def test_messages_are_sent_changed_and_deleted(double: TelegramDouble, bot: Bot):
    keys = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="5.0")]])
    sent = await bot.send_message(1, r"*May I\?*", parse_mode=ParseMode.MARKDOWN_V2, reply_markup=keys)
    assert [(shown.text, shown.buttons) for shown in double.chats.of("1")] == [("May I?", ("Yes",))]

    await double.press(str(sent.message_id), 0)
    (update,) = await bot.get_updates(timeout=1)
    assert update.callback_query.data == "5.0"
    await update.callback_query.answer("ok")
    assert double.answered[0][1] == "ok"

    await bot.edit_message_text("Done", 1, sent.message_id)
    with pytest.raises(BadRequest, match="not modified"):
        await bot.edit_message_text("Done", 1, sent.message_id)
    await bot.delete_message(1, sent.message_id)
    assert double.chats.of("1") == []


async def test_a_file_is_sent_and_fetched(double: TelegramDouble, bot: Bot):
    await bot.send_document(1, b"content", filename="a.txt", caption="See")
    assert [(shown.file, shown.text) for shown in double.chats.of("1")] == [("a.txt", "See")]

    double.files["f1"] = b"content"
    file = await bot.get_file("f1")
    assert bytes(await file.download_as_bytearray()) == b"content"


async def test_a_draft_is_no_message_and_only_for_private_chats(double: TelegramDouble, bot: Bot):
    assert await bot.send_message_draft(1, 5, r"*It works*\.", parse_mode=ParseMode.MARKDOWN_V2)
    assert (double.chats.drafts, double.chats.of("1")) == ({"1": ["It works."]}, [])

    for chat, id_, text, refusal in (
        (-9, 5, "Hi", "PEER_INVALID"),
        (1, 0, "Hi", "RANDOM_ID"),
        (1, 5, " ", "non-empty"),
    ):
        with pytest.raises(BadRequest, match=f"(?i){refusal}"):
            await bot.send_message_draft(chat, id_, text)
    await bot.send_message(1, "It works.")
    assert not double.chats.drafts
    double.drafts = False
    with pytest.raises(InvalidToken, match="Not Found"):
        await bot.send_message_draft(1, 5, "Hi")


@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
async def test_it_refuses_what_the_bot_api_refuses(double: TelegramDouble, bot: Bot):
    with pytest.raises(BadRequest, match="t parse entities"):
        await bot.send_message(1, "1.", parse_mode=ParseMode.MARKDOWN_V2)
    with pytest.raises(BadRequest, match="too long"):
        await bot.send_message(1, "x" * 4097)
    double.chats.order(Trouble.BUSY, "send")
    with pytest.raises(RetryAfter):
        await bot.send_message(1, "Hi")


async def test_another_token_is_refused(double: TelegramDouble):
    with pytest.raises(InvalidToken):
        async with Bot("1:x", base_url=f"{double.url}/bot"):
            pass


@pytest.mark.parametrize("text", ["*open", "`open", "[a](b", "a-b", "x]"])
def test_a_format_that_is_not_closed_is_refused(text: str):
    with pytest.raises(Refused):
        unformatted(text)


def test_formatting_is_taken_away():
    assert unformatted("*b* _i_ ~g~ `c` [w](u) \\. \n>q\n```py\nx\n```") == "b i g c w . \nq\nx"


async def test_updates_are_polled_or_brought(double: TelegramDouble, bot: Bot):
    with pytest.raises(BadRequest, match="https url"):
        await bot.set_webhook("http://bot.test")
    await bot.set_webhook("https://bot.test/x", secret_token="s", max_connections=1)
    with pytest.raises(Conflict, match="webhook is active"):
        await bot.get_updates(timeout=0)

    await bot.delete_webhook()
    assert await bot.get_updates(timeout=0) == ()


async def test_a_group_that_moved_says_where(double: TelegramDouble, bot: Bot):
    double.upgrade("-9", "-1009")
    one, two = await bot.get_updates(timeout=0)

    assert (one.message.migrate_to_chat_id, two.message.migrate_from_chat_id) == (-1009, -9)
    with pytest.raises(ChatMigrated) as moved:
        await bot.send_message(-9, "Hi")
    assert moved.value.new_chat_id == -1009
