"""A real Matrix homeserver (Synapse on SQLite, loopback) and the people on it, each with matrix-nio's client."""

import asyncio
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from nio import AsyncClient, AsyncClientConfig, RoomMessage, RoomSendResponse

from tests.ports import free_port

SERVER = "hermes.test"
SECRET = "a secret of the test"
CONFIG = """
server_name: {server}
pid_file: {folder}/pid
listeners:
  - {{port: {port}, type: http, tls: false, bind_addresses: [127.0.0.1], resources: [{{names: [client]}}]}}
database: {{name: sqlite3, args: {{database: {folder}/homeserver.db}}}}
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
macaroon_secret_key: {secret}
form_secret: {secret}
registration_shared_secret: {secret}
report_stats: false
trusted_key_servers: []
suppress_key_server_warning: true
presence: {{enabled: false}}
federation_domain_whitelist: []
rc_message: &much {{per_second: 1000, burst_count: 1000}}
rc_registration: *much
rc_joins: {{local: *much, remote: *much}}
rc_invites: {{per_room: *much, per_user: *much, per_issuer: *much}}
rc_login: {{address: *much, account: *much, failed_attempts: *much}}
"""


@dataclass(slots=True, kw_only=True)
class Synapse:
    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def token(self, name: str) -> tuple[str, str]:
        """Register somebody; their access token and device."""
        nonce = self.ask("/_synapse/admin/v1/register")["nonce"]
        words = "\0".join((nonce, name, "password", "notadmin")).encode()
        mac = hmac.new(SECRET.encode(), words, hashlib.sha1).hexdigest()
        given = {"nonce": nonce, "username": name, "password": "password", "admin": False, "mac": mac}
        found = self.ask("/_synapse/admin/v1/register", {**given, "displayname": name.capitalize()})
        return found["access_token"], found["device_id"]

    def ask(self, path: str, content: dict | None = None) -> dict:
        body = json.dumps(content).encode() if content is not None else None
        with urlopen(Request(f"{self.url}{path}", data=body), timeout=20) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def start(self) -> None:
        self.process = started(self.folder, self.port)


def is_installed() -> bool:
    return find_spec("synapse") is not None


@contextmanager
def synapse() -> Iterator[Synapse]:
    folder = Path(tempfile.mkdtemp(prefix="synapse"))
    port = free_port()
    (folder / "homeserver.yaml").write_text(CONFIG.format(folder=folder, port=port, server=SERVER, secret=SECRET))
    subprocess.run([*command(folder), "--generate-keys"], check=True, capture_output=True, env=environment(folder))
    server = Synapse(folder=folder, port=port, process=started(folder, port))
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def started(folder: Path, port: int) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command(folder), stdout=log, stderr=log, env=environment(folder))
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/_matrix/client/versions", timeout=2):
                return process
        except (URLError, OSError):
            threading.Event().wait(0.1)
    process.kill()
    raise RuntimeError("Synapse did not start:\n" + (folder / "log").read_text()[-2000:])


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "synapse.app.homeserver", "-c", str(folder / "homeserver.yaml")]


def environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)}


class AtOnce(Executor):
    """Does everything in the thread that asks. The database library of matrix-nio binds its tables for the whole
    process at each use, so people and the agent cannot use it in two threads at a time."""

    def submit(self, do, /, *given, **named):
        future = Future()
        future.set_result(do(*given, **named))
        return future


class Person:
    """Somebody at their own program."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.id = client.user_id
        self.seen: list[dict] = []

    async def room(self, *invited: str, encrypted: bool = False) -> str:
        state = [
            {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
        ] * encrypted
        direct = len(invited) == 1
        made = await self.client.room_create(invite=invited, is_direct=direct, initial_state=state)
        return made.room_id

    async def meets(self, room: str, user: str) -> None:
        """Return when somebody is in a room."""
        async with asyncio.timeout(60):
            while user not in {each.user_id for each in getattr(await self.client.joined_members(room), "members", ())}:
                await asyncio.sleep(0.05)

    async def say(self, room: str, text: str, **more: object) -> str:
        sent = await self.client.room_send(
            room, "m.room.message", {"msgtype": "m.text", "body": text, **more}, ignore_unverified_devices=True
        )
        assert isinstance(sent, RoomSendResponse), sent
        return sent.event_id

    async def react(self, room: str, event: str, key: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": event, "key": key}
        await self.client.room_send(room, "m.reaction", {"m.relates_to": relation})

    async def look(self) -> None:
        """Ask the server what is new."""
        found = await self.client.sync(timeout=500, full_state=False)
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        if self.client.should_query_keys:
            await self.client.keys_query()
        if self.client.should_claim_keys:
            await self.client.keys_claim(self.client.get_users_for_key_claiming())
        for room, each in getattr(found, "rooms", None).join.items() if hasattr(found, "rooms") else ():
            for event in each.timeline.events:
                self.seen.append({**event.source, "room": room, "opened": isinstance(event, RoomMessage)})

    async def of(self, room: str, sender: str) -> list[dict]:
        """The messages of somebody in a room as they read now, oldest first."""
        await self.look()
        shown: dict[str, dict] = {}
        for event in self.seen:
            if event["room"] != room or event["sender"] != sender or event["type"] != "m.room.message":
                continue
            content, relation = event["content"], event["content"].get("m.relates_to") or {}
            if relation.get("rel_type") == "m.replace":
                shown[relation["event_id"]] = {**shown[relation["event_id"]], **content["m.new_content"]}
            elif content:
                shown[event["event_id"]] = {"relation": relation, "id": event["event_id"], **content}
        return list(shown.values())


@asynccontextmanager
async def person(server: Synapse, name: str, folder: Path | None = None) -> AsyncIterator[Person]:
    token, device = server.token(name)
    store = {"store_path": str(folder)} if folder else {}
    config = AsyncClientConfig(encryption_enabled=folder is not None, max_timeouts=60)
    client = AsyncClient(server.url, f"@{name}:{SERVER}", device_id=device, config=config, **store)
    client.restore_login(f"@{name}:{SERVER}", device, token)
    made = Person(client)
    try:
        yield made
    finally:
        await client.close()
