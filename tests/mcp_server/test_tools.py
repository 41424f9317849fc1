"""What programs do with Hermes over MCP: conversations, runs, questions, the board and jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Call, Say
from tests.app.place import counting
from tests.api.served import GUEST_KEY, MEMBER_KEY
from tests.mcp_server.clients import ERAS, client, connected, failed, said, told

PEER = (
    "conversations_list conversation_get messages_read attachments_fetch events_poll events_wait messages_send "
    "channels_list permissions_list_open permissions_respond"
).split()
ASKS = Call("clarify", {"question": "Which one?", "choices": ["a", "b"]})


@pytest.mark.parametrize("era", ERAS)
async def test_a_program_asks_and_reads_the_conversation(tmp_path: Path, era: str):
    async with connected(tmp_path, counting, era) as (_, mcp):
        names = {tool.name for tool in (await mcp.list_tools()).tools}
        reply = await said(mcp, "ask", message="Hi")
        (session,) = await told(mcp, "conversations_list")
        messages = await told(mcp, "messages_read", session=session["id"])

    assert names >= {*PEER, "ask", "session_search", "board_list", "jobs_list"}
    assert reply == f"Reply 1.\n[answered; session {session['id']}]"
    assert [each["text"] for each in messages["messages"]] == ["Hi", "Reply 1."]
