"""What servers offered is kept in rows, and replaced as a whole."""

from hermes_agent.store.mcp.catalogue import McpLink, McpPrompt, McpTool

READ = McpTool(name="read", description="Reads.", parameters={"type": "object"}, reads=True)
BAD = McpTool(name="bad", why="its parameters are no object")


async def test_a_listing_is_kept_in_its_order_and_replaced_as_a_whole(store):
    link = McpLink(server="files", config="c1", seen=5.0, prompts=(McpPrompt(name="p", arguments=("a",)),))
    await store.mcp.put(link, (READ, BAD))
    await store.mcp.put(McpLink(server="other"), ())

    assert await store.mcp.links() == {"files": link, "other": McpLink(server="other")}
    assert await store.mcp.tools("files") == (READ, BAD)

    await store.mcp.put(link, (BAD,))
    assert await store.mcp.tools("files") == (BAD,)


async def test_a_failure_leaves_the_tools(store):
    await store.mcp.put(McpLink(server="files", seen=5.0), (READ,))

    await store.mcp.put(McpLink(server="files", seen=5.0, why="it did not answer"))

    assert await store.mcp.tools("files") == (READ,)
    assert (await store.mcp.links())["files"].why == "it did not answer"


async def test_a_forgotten_server_leaves_nothing(store):
    await store.mcp.put(McpLink(server="files"), (READ,))

    await store.mcp.forget("files")

    assert await store.mcp.links() == {}
    assert await store.mcp.tools("files") == ()
