"""The notes of a home outside a whole system."""

from hermes_agent.app.local_notes import local_owner, notes_of, owner_by
from hermes_agent.core.inbound import Standing
from hermes_agent.host.paths import Home
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.memory.whose import Target
from hermes_agent.store.database import open_store
from hermes_agent.store.versions import Author


def test_the_person_of_this_machine_is_the_owner():
    assert local_owner().standing is Standing.OWNER
    assert (owner_by().author, owner_by().principal) == (Author.OWNER, local_owner().key)


async def test_notes_of_a_home_have_its_limits(tmp_path):
    store = await open_store(tmp_path / "hermes.db")
    notes = notes_of(Home(root=tmp_path, base=tmp_path), store, MemorySettings(memory_char_limit=300))
    await store.close()

    assert notes.limit(Target.MEMORY) == 300
