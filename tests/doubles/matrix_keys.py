"""The keys that a Matrix homeserver's double knows: those of devices and of accounts, and what goes to devices."""

from __future__ import annotations

from aiohttp import web

from hermes_agent.core.dataclass import dataclass
from tests.doubles.matrix import OWN, MatrixPlatform, Values

ACCOUNT = {
    "master_key": "master_keys",
    "self_signing_key": "self_signing_keys",
    "user_signing_key": "user_signing_keys",
}


@dataclass(slots=True)
class Keys:
    """The part of the client-server API that is about keys. An account's own are taken once without a password."""

    at: MatrixPlatform

    async def upload(self, request: web.Request) -> web.Response:
        content: Values = await request.json()
        if device := content.get("device_keys"):
            self.at.keys.setdefault("device_keys", {}).setdefault(OWN, {})[device["device_id"]] = device
        return web.json_response({"one_time_key_counts": {"signed_curve25519": 50}})

    async def query(self, request: web.Request) -> web.Response:
        asked = (await request.json())["device_keys"]
        self.at.asked.append(len(asked))
        found = {name: {user: each[user] for user in asked if user in each} for name, each in self.at.keys.items()}
        return await self._answered(asked, {"device_keys": {}, **found})

    async def claim(self, request: web.Request) -> web.Response:
        asked = (await request.json())["one_time_keys"]
        failing = {user for user in asked if user.partition(":")[2] in self.at.failing}
        found = {user: self.at.one_time[user] for user in asked if user in self.at.one_time and user not in failing}
        return await self._answered(asked, {"one_time_keys": found})

    async def _answered(self, asked: Values, found: Values) -> web.Response:
        """What was known when it was asked, when the others' servers have said what they know."""
        answer = web.json_response({"failures": {server: {} for server in self.at.failing}, **found})
        if self.at.silent & asked.keys():
            await self.at.spoken.wait()
        return answer

    async def account(self, request: web.Request) -> web.Response:
        if self.at.keys.get("master_keys") or self.at.guarded:
            return web.json_response({"flows": [{"stages": ["m.login.password"]}], "session": "s"}, status=401)
        content: Values = await request.json()
        for name in ACCOUNT:
            self.at.keys[f"{name}s"] = {OWN: content[name]}
        return web.json_response({})

    async def signatures(self, request: web.Request) -> web.Response:
        if self.at.guarded:
            return web.json_response({"failures": {OWN: {"DEVICE": {"errcode": "M_INVALID_SIGNATURE"}}}})
        for user, devices in (await request.json()).items():
            self.at.keys["device_keys"][user].update(devices)
        return web.json_response({"failures": {}})

    async def direct(self, request: web.Request) -> web.Response:
        content = await request.json()
        self.at.direct.append((request.match_info["kind"], content["messages"]))
        return web.json_response({})
