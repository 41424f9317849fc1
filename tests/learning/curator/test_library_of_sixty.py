"""The curator on a library of 60: the right states, nothing touched that is not its own, every past query answered,
and back to the byte."""

from pathlib import Path

from hermes_agent.learning.curator.curating import Curator
from hermes_agent.providers.demo.script import Say
from hermes_agent.skills.depot import State
from hermes_agent.store.versions import Author, By
from tests.learning.curator.harness import Kept, Upkeep, join, kept_home, loads, points
from tests.skills.shelf import skill_text

AHEAD = 40.0
BY = By(author=Author.BACKGROUND)
PAIRS = ("kettle", "ledger", "parcel", "violin", "quarry")
WORDS = {
    "kettle": "descale the kettle with vinegar and rinse twice",
    "ledger": "reconcile the ledger against the bank statement monthly",
    "parcel": "label the parcel and book the courier pickup",
    "violin": "tune the violin strings and rosin the bow",
    "quarry": "survey the quarry face and log the strata",
}


def named(sort: str, words: str) -> list[str]:
    return [f"{sort}-{word}" for word in words.split()]


STALE = named("stale", "amber basil cedar daisy ember fennel ginger hazel indigo jasper kelp lilac maple nectar olive")
GONE = named("gone", "anchor beacon compass dinghy estuary ferry galley harbor inlet jetty")
PINNED = named("pinned", "zinc yarrow xenon walnut velvet")
MINE = named("mine", "apple bread candy donut eclair fudge gravy honey icing jelly")
LIVE = named("live", "orbit pulsar quasar rocket saturn titan uranus vega wormhole zenith")


async def filled(kept: Kept) -> None:
    """60 skills; those that were asked for were asked for today."""
    for word in PAIRS:
        for sort in ("care", "upkeep"):
            body = f"1. {WORDS[word].capitalize()}.\n2. Note for {word} in the {sort} book.\n\n`{word}ctl --{sort} run`"
            await kept.make(f"{word}-{sort}", body, description=f"How to {WORDS[word]}. Use it for {word} {sort}.")
            await kept.used(f"{word}-{sort}", AHEAD - 1)
    for name in STALE:
        await kept.make(name, f"1. Press the {name[6:]} and strain it.", category="herbs")
    for name in (*GONE, *PINNED, *LIVE):
        category = "sea" if name in GONE else ""
        await kept.make(name, f"1. Attend to the {name.partition('-')[2]}.", days=AHEAD - 100, category=category)
    for name in MINE:
        await kept.make(name, f"1. Bake the {name[5:]}.", days=AHEAD - 100, author=Author.OWNER)
    for name in LIVE:
        await kept.used(name, AHEAD - 2)
    await kept.here.runtime.skills.library.state.change(lambda _: State(pinned=tuple(PINNED)))
    await kept.writer().write_file("kettle-upkeep", "scripts/run.sh", b"#!/bin/sh\necho hot\n", BY)
    (kept.here.runtime.skills.home / "kettle-upkeep/scripts/run.sh").chmod(0o700)


async def asked(kept: Kept) -> list[tuple[str, str]]:
    """Past queries, each with the skill that was loaded for it."""
    past = [(f"{word}-{sort}", f"please {WORDS[word]} ({sort})") for word in PAIRS for sort in ("care", "upkeep")]
    past += [(name, f"press {name[6:]} and strain it now") for name in STALE[:5]]
    for name, words in past:
        await kept.ask(name, words)
    return [(name, f"{name}: {words}") for name, words in past]


def joined(word: str):
    body = (
        f"1. {WORDS[word].capitalize()}.\n2. Note for {word} in the care book, or the upkeep book.\n\n"
        f"`{word}ctl --care run`, `{word}ctl --upkeep run`"
    )
    text = skill_text(f"{word}-care", f"How to {WORDS[word]}. Use it for {word} care and {word} upkeep.", body)
    return join(f"{word}-care", f"{word}-upkeep", content=text)


async def test_a_library_of_sixty_is_in_order_after_a_pass_and_as_it_was_after_its_rollback(tmp_path: Path):
    script = Upkeep(
        [[joined(word) for word in PAIRS], [points("live-orbit"), points("stale-kelp", 1)], Say("Done.")], loads
    )
    async with kept_home(tmp_path, script) as kept:
        await filled(kept)
        queries = await asked(kept)
        before = kept.tree()
        answers = {words: await kept.found(words) for _, words in queries}
        kept.ahead(AHEAD + 0.01)
        assert isinstance(kept.curating.curator, Curator)

        looked = await kept.curating.run()
        assert (looked.looks, kept.tree() == before, script.asked) == (True, True, 0)
        assert sorted(each.name for each in looked.changes) == sorted(GONE)

        run = await kept.curating.run()
        status = {row.name: row for row in (await kept.curating.status()).skills}
        after = kept.tree()

        assert {each.name: each.state for each in run.changes} == {
            **dict.fromkeys(GONE, "done"),
            **{f"{word}-care": "done" for word in PAIRS},
        }
        assert {name: status[name].age for name in STALE} == dict.fromkeys(STALE, "stale")
        assert {name: status[name].age for name in LIVE} == dict.fromkeys(LIVE, "active")
        assert not set(status) & {*GONE, *(f"{word}-upkeep" for word in PAIRS)}
        for name in (*PINNED, *MINE):
            assert after[f"{name}/SKILL.md"] == before[f"{name}/SKILL.md"]
            assert status[name].age == ""
        assert (len(run.changes), run.lost) == (15, ())
        assert run.checked == len([1 for name, words in queries if name in answers[words]]) >= 13
        for name, words in queries:
            if name in answers[words]:
                assert {name, name.replace("upkeep", "care")} & set(await kept.found(words))
        assert after["kettle-care/scripts/run.sh"] == before["kettle-upkeep/scripts/run.sh"]

        lines = await kept.curating.rollback()
        assert len(lines) == 20
        assert kept.tree() == before
