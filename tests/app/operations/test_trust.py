"""Operations on trusted folders: for the owner alone, in words."""

from pathlib import Path

import pytest

from hermes_agent.app.folder_trust import NOTHING, News
from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Say
from tests.app.place import place


async def test_a_folder_is_shown_trusted_listed_and_withdrawn(tmp_path: Path):
    async with place(tmp_path, [Say("Hello.")]) as here:
        (tmp_path / "work/AGENTS.md").write_text("Use tabs.\n")
        work = str(tmp_path / "work")
        assert "AGENTS.md:\nUse tabs." in await here.text("/trust")
        assert f"{work} is trusted." in await here.text("/trust add")
        assert "is trusted as it is" in await here.text("/trust show")
        assert work in await here.text("/trust list")
        assert "no longer trusted" in await here.text(f"/trust withdraw {work}")
        assert "No folder is trusted." in await here.text("/trust list")
        assert "is trusted." in await here.text("/trust once")
        with pytest.raises(HermesError, match="too wide"):
            await here.text("/trust add /")
        with pytest.raises(HermesError, match="not a folder"):
            await here.text("/trust add /nowhere/at/all")
        assert "too wide" in await here.text("/trust show /")


def test_the_question_is_one_line_that_names_what_speaks():
    news = News(root=Path("/w"), files=dict.fromkeys(("a", "b", "c", "d"), ""), findings=("a: odd",))
    assert news.notice.text.startswith("Do you trust the files of /w? a, b, c and 1 other")
    assert "a: odd" in news.notice.text
    assert NOTHING in News(root=Path("/w"), files={}).notice.text
