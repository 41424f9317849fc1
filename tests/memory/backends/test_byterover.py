"""ByteRover through its program: both of its protocols, and what it may answer instead."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.memory.backend import Exchange
from hermes_agent.memory.backends.byterover import ByteRover, topic
from tests.memory.backends.brv import installed
from tests.memory.harness import TOLD


def made(folder: Path, behaves: str = "") -> ByteRover:
    return ByteRover(folder=folder / "tree", environment=installed(folder, behaves))


async def test_an_exchange_becomes_a_topic_of_its_conversation(tmp_path: Path):
    backend = made(tmp_path)

    await backend.remember(Exchange(session="20261122_A-1", said='I like <tea> & "milk".', reply="Noted:\ntea."))

    (file,) = (tmp_path / "tree" / ".brv" / "context-tree" / "conversations" / "20261122_a_1").iterdir()
    assert "I like &lt;tea&gt; &amp; &quot;milk&quot;." in file.read_text()
    assert "Noted:" in (await backend.recall("noted:"))[0]


async def test_the_same_fact_is_kept_once(tmp_path: Path):
    backend = made(tmp_path)

    await backend.add("The cat is called Mina.", TOLD)
    await backend.add("The cat is called Mina.", TOLD)

    assert len(await backend.recall("cat")) == 1


async def test_a_version_that_writes_by_itself_is_let_do_so(tmp_path: Path):
    backend = made(tmp_path, "writes itself")

    await backend.add("The cat is called Mina.", TOLD)

    assert "Mina" in (await backend.recall("cat"))[0]


async def test_words_that_no_program_can_be_given_are_given_all_the_same(tmp_path: Path):
    backend = made(tmp_path)

    await backend.add("--format zero\0byte half\ud83d cat", TOLD)

    assert "zerobyte" in (await backend.recall("cat"))[0]
    assert await backend.recall("--limit") == []


@pytest.mark.parametrize(
    ("behaves", "why"),
    [
        ("refuses", "byterover refused: No provider connected."),
        ("silent", "byterover answered with no JSON: Unable to connect"),
        ("never content", "byterover kept nothing: no path"),
    ],
)
async def test_what_goes_wrong_is_a_sentence(behaves: str, why: str, tmp_path: Path):
    with pytest.raises(HermesError, match=why):
        await made(tmp_path, behaves).add("The cat is called Mina.", TOLD)


async def test_without_the_program_it_says_how_to_get_it(tmp_path: Path):
    backend = ByteRover(folder=tmp_path, environment={"PATH": str(tmp_path)})

    with pytest.raises(HermesError, match="npm install -g byterover-cli"):
        await backend.health()


async def test_a_program_that_cannot_be_run_is_a_sentence(tmp_path: Path):
    (tmp_path / "brv").mkdir()
    backend = ByteRover(folder=tmp_path, environment={"PATH": str(tmp_path)})

    with pytest.raises(HermesError, match="`brv status` did not answer"):
        await backend.health()


def test_a_topic_lies_where_its_words_say():
    assert topic("facts", "a") == topic("facts", "a")
    assert topic("facts", "a") != topic("facts", "b")
