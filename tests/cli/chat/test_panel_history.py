from pathlib import Path

from hermes_agent.cli.chat.panel import ChatHistory


def newest_first(path: Path) -> list[str]:
    return list(ChatHistory(path).load_history_strings())


def test_messages_are_kept_newest_first_each_as_one_for_their_owner_alone(tmp_path: Path):
    path = tmp_path / "chat_history"
    history = ChatHistory(path)
    history.append_string("one")
    history.append_string("two\nlines 日本")

    assert newest_first(path) == ["two\nlines 日本", "one"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_begins_with_a_space_is_never_written(tmp_path: Path):
    path = tmp_path / "chat_history"
    ChatHistory(path).append_string(" my password is 1234")

    assert not path.exists()


def test_the_same_message_again_is_kept_once(tmp_path: Path):
    history = ChatHistory(tmp_path / "chat_history")
    for _ in range(3):
        history.append_string("again")

    assert newest_first(tmp_path / "chat_history") == ["again"]


def test_a_damaged_line_is_passed_over(tmp_path: Path):
    path = tmp_path / "chat_history"
    path.write_bytes(b'"one"\n\xff\xfe{\n[1]\n"two"\n')

    assert newest_first(path) == ["two", "one"]


def test_a_place_that_cannot_be_written_ends_nothing(tmp_path: Path):
    history = ChatHistory(tmp_path / "no" / "such" / "folder")
    history.append_string("one")

    assert history.get_strings() == ["one"]
