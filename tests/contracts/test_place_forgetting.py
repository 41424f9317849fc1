"""Every place forgets what nobody needs any more."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.sandbox.place import Command, Place
from tests.contracts.test_place import run


async def test_the_oldest_outputs_go_where_all_take_too_much(place: Place, plain: Command) -> None:
    for name in ("first", "second", "third"):
        await run(place, f"g/{name}", replace(plain, text="head -c 700000 /dev/zero; sleep 0.02"))
    running = await place.start(
        "g/running", replace(plain, text="head -c 3000000 /dev/zero; sleep 60", background=True)
    )

    assert await place.prune(60, 3) == 0
    assert await place.prune(60, 1) == 2

    assert await place.attach("g/first") is None
    assert await place.attach("g/second") is None
    assert await place.attach("g/third") is not None
    assert await running.poll() is None
    await running.kill()
