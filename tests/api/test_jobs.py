"""Scheduled jobs over HTTP: everybody's own, the owner's all."""

from tests.api.served import MEMBER_KEY, Server, served
from tests.app.place import counting


async def made(server: Server, **more: object) -> dict:
    body = {"schedule": "every 2h", "prompt": "Hello", "name": "greet", **more}
    return (await server.ask("POST", "/v1/jobs", body)).json()


async def test_a_job_is_made_read_changed_and_removed(tmp_path):
    async with served(tmp_path, counting) as server:
        job = await made(server)
        assert (job["name"], job["state"], len(job["next"])) == ("greet", "on", 3)
        path = f"/v1/jobs/{job['id']}"
        assert (await server.ask("GET", "/v1/jobs")).json()["data"][0]["id"] == job["id"]
        changed = (await server.ask("PATCH", path, {"prompt": "Bye"})).json()
        assert changed["prompt"] == "Bye"
        assert (await server.ask("POST", f"{path}/pause")).json()["state"] == "paused"
        assert (await server.ask("POST", f"{path}/resume")).json()["state"] == "on"
        assert (await server.ask("POST", f"{path}/run")).status_code == 200
        runs = (await server.ask("GET", f"{path}/runs")).json()["data"]
        assert "manual" in {each["why"] for each in runs}
        assert (await server.ask("DELETE", path)).json() == {"id": job["id"], "deleted": True}
        for method, rest in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run"), ("GET", "/runs")):
            gone = await server.ask(method, f"{path}{rest}", {} if method == "PATCH" else None)
            assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")


async def test_what_is_wrong_with_a_job_is_said(tmp_path):
    async with served(tmp_path, counting) as server:
        assert "no schedule" in (await made(server, schedule="soon"))["error"]["message"]
        assert "unknown field" in (await made(server, colour="red"))["error"]["message"]


async def test_a_member_sees_no_job_of_the_owner(tmp_path):
    async with served(tmp_path, counting) as server:
        job = await made(server)
        other = await server.ask("GET", f"/v1/jobs/{job['id']}", key=MEMBER_KEY)
        assert other.status_code == 404
        assert (await server.ask("GET", "/v1/jobs", key=MEMBER_KEY)).json()["data"] == []
