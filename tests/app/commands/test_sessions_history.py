"""What was said, as the model sees it and as the log has it."""

from pathlib import Path

from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.app.place import place


def script(heard: Heard) -> Say | Call:
    if "You keep the record" in heard.system:
        return Say("## Task\nTalk.")
    if heard.last.role == "user" and "Look" in heard.last.text:
        return Call("read_file", {"path": "a.txt"})
    return Say("word " * 1200)


async def test_without_a_word_there_is_nothing(tmp_path: Path):
    async with place(tmp_path, script) as here:
        assert await here.text("/history") == "Nothing was said yet."
        assert await here.text("/history --full") == "Nothing was said yet."


async def test_the_log_shows_what_the_model_no_longer_sees(tmp_path: Path):
    async with place(tmp_path, script) as here:
        (tmp_path / "work" / "a.txt").write_text("The heron is here.")
        await here.say("Look at it, please.")
        for number in range(5):
            await here.say(f"Message {number} of them")
        before = await here.text("/history")
        await here.text("/compress")
        now = await here.text("/history")
        await here.text("/undo")
        whole = await here.text("/history --full")

    assert "you: Look at it, please." in before
    assert "(calls read_file)" in before
    assert "characters more]" in before
    assert "Message 1 of them" not in now
    assert "Message 1 of them" in whole
    assert "The heron is here." in whole
    assert "(compacted for the model: " in whole
    assert "(undone: everything after #" in whole
