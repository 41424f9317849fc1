from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from hermes_agent.cli.chat.chat_session import names
from hermes_agent.cli.chat.completion import ChatCompleter, ChatHistory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src" / "main").mkdir(parents=True)
    (tmp_path / "src" / "notes.md").touch()
    (tmp_path / ".hidden").touch()
    return tmp_path


def completed(folder: Path, text: str) -> list[str]:
    found = ChatCompleter(lambda: str(folder)).get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + each.start_position] + each.text for each in found]


def test_a_slash_offers_every_command_with_its_summary(folder: Path):
    found = list(ChatCompleter(lambda: str(folder)).get_completions(Document("/"), CompleteEvent()))

    assert {"help", "stop", "queue", "quit"} <= {each.text for each in found}
    assert all(each.display_meta_text for each in found)
    assert len(found) == len(names())


def test_a_command_is_completed_only_at_the_beginning(folder: Path):
    assert completed(folder, "/stat") == ["/status"]
    assert completed(folder, "see /stat") == []
    assert completed(folder, "/status ") == []


def test_paths_are_completed_behind_an_at(folder: Path):
    assert completed(folder, "look at @s") == ["look at @src/", "look at @src/notes.md"]
    assert completed(folder, "@src/") == ["@src/main/", "@src/notes.md"]
    assert completed(folder, f"@{folder}/src/no") == [f"@{folder}/src/notes.md"]


def test_a_file_is_found_by_any_letters_of_its_path(folder: Path):
    (folder / "src" / "app main.py").touch()
    (folder / ".venv").mkdir()
    (folder / ".venv" / "notes.md").touch()

    assert completed(folder, "see @not") == ["see @src/notes.md"]
    assert completed(folder, "@snm") == ["@src/notes.md"]
    assert completed(folder, "@appm") == ['@"src/app main.py"']
    assert completed(folder, "@zzz") == []


def test_other_names_of_commands_are_offered_once_something_is_typed(folder: Path):
    found = list(ChatCompleter(lambda: str(folder)).get_completions(Document("/cle"), CompleteEvent()))

    assert [(each.text, each.display_meta_text) for each in found] == [("clear", "Start a new session. (/new)")]


def test_hidden_files_are_offered_when_asked_for(folder: Path):
    assert completed(folder, "@") == ["@src/"]
    assert completed(folder, "@.h") == ["@.hidden"]


def test_an_address_or_a_missing_folder_offers_nothing(folder: Path):
    assert completed(folder, "me@s") == []
    assert completed(folder, "@nowhere/x") == []


def test_skills_are_completed_beside_commands_and_a_command_wins(folder: Path):
    skills = [("release", "A bundle of skills."), ("release-notes", "Writes\nnotes."), ("status", "Hidden.")]
    completer = ChatCompleter(lambda: str(folder), lambda: skills)
    found = list(completer.get_completions(Document("/release-"), CompleteEvent()))

    assert [(each.text, each.display_meta_text) for each in found] == [("release-notes", "Writes notes.")]
    assert len(list(completer.get_completions(Document("/status"), CompleteEvent()))) == 1


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
