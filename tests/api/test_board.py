"""The board over HTTP: the owner's, and what a member sees of it."""

from hermes_agent.providers.demo.script import Say
from tests.api.served import GUEST_KEY, MEMBER_KEY, served

CARDS = "/v1/board/cards"


async def test_a_card_is_created_read_changed_steered_and_removed(tmp_path):
    async with served(tmp_path, [Say("x")]) as server:
        made = await server.ask("POST", CARDS, {"title": "Write", "body": "b", "priority": 1, "hold": True})
        card = made.json()["id"]
        path = f"{CARDS}/{card}"
        assert (made.status_code, made.json()["status"], made.json()["blocked"]) == (201, "blocked", "needs_input")
        assert (await server.ask("PATCH", path, {"title": "Read"})).json()["title"] == "Read"
        assert (await server.ask("POST", f"{path}/comment", {"text": "hello"})).json()["id"] == card
        other = (await server.ask("POST", CARDS, {"title": "First", "hold": True})).json()["id"]
        linked = await server.ask("POST", f"{other}", {"to": card})
        assert linked.status_code == 404
        assert (await server.ask("POST", f"{CARDS}/{other}/link", {"to": card})).json()["id"] == other

        seen = (await server.ask("GET", path)).json()
        assert [each["id"] for each in seen["parents"]] == [other]
        assert [each["text"] for each in seen["events"] if each["kind"] == "comment"] == ["hello"]
        listed = (await server.ask("GET", f"{CARDS}?status=blocked")).json()
        assert [each["id"] for each in listed["data"]] == [card, other]
        assert "hermes gateway" in listed["notice"] or listed["notice"] == ""
        assert (await server.ask("GET", "/v1/board/stats")).json()["boards"] == {"main": {"blocked": 2}}

        assert (await server.ask("POST", f"{path}/cancel", {})).json()["status"] == "cancelled"
        assert (await server.ask("POST", f"{path}/archive", {})).json()["status"] == "archived"
        assert (await server.ask("DELETE", path)).json()["text"] == f"{card} is gone."
        assert (await server.ask("GET", path)).status_code == 404


async def test_what_is_wrong_is_named(tmp_path):
    async with served(tmp_path, [Say("x")]) as server:
        for body, word in (
            ({"title": ""}, "1 to 200"),
            ({"title": "x", "assignee": "nobody"}, "There is no profile `nobody`"),
            ({"title": "x", "workspace": "dir:/etc"}, "holds the system"),
            ({"title": "x", "board": "mian"}, "Did you mean `main`"),
        ):
            answer = await server.ask("POST", CARDS, body)
            assert answer.status_code == 409
            assert word in answer.json()["error"]["message"]
        assert (await server.ask("POST", CARDS, {"title": "x" * 201})).status_code == 409
        unknown = await server.ask("POST", f"{CARDS}/t_000000/fly", {})
        assert "There is no verb `fly`" in unknown.json()["error"]["message"]
        assert (await server.ask("POST", f"{CARDS}/t_000000/cancel", {})).status_code == 404


async def test_a_member_sees_their_own_cards_and_a_guest_none(tmp_path):
    async with served(tmp_path, [Say("x")]) as server:
        owners = (await server.ask("POST", CARDS, {"title": "Secret", "hold": True})).json()["id"]
        own = (await server.ask("POST", CARDS, {"title": "Mine", "hold": True}, key=MEMBER_KEY)).json()["id"]
        listed = (await server.ask("GET", CARDS, key=MEMBER_KEY)).json()
        assert [each["id"] for each in listed["data"]] == [own]
        assert (await server.ask("GET", f"{CARDS}/{owners}", key=MEMBER_KEY)).status_code == 404
        assert (await server.ask("POST", f"{CARDS}/{owners}/cancel", {}, key=MEMBER_KEY)).status_code == 404
        assert (await server.ask("GET", "/v1/board/stats", key=MEMBER_KEY)).status_code == 409
        refused = await server.ask("POST", CARDS, {"title": "x"}, key=GUEST_KEY)
        assert "Guests have no board" in refused.json()["error"]["message"]
