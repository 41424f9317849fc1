"""Who does what is due, on both databases."""

from tests.databases import OpenAnother
from tests.store.made import SOON, die


async def test_whoever_serves_is_known_until_they_are_gone(open_another: OpenAnother):
    server, asks = await open_another(timings=SOON), await open_another(timings=SOON)
    assert not await asks.serving.served()
    await server.workers.register()
    await server.serving.serve()
    await asks.workers.register()
    assert await asks.serving.served()
    await die(server)
    assert not await asks.serving.served()
