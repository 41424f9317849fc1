"""Checks AWS Signature Version 4 on a request, from the published algorithm and without AWS's own library.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import quote

from hermes_agent.host.inbound.message import Request

ALGORITHM = "AWS4-HMAC-SHA256"
AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), ?"
    r"SignedHeaders=(?P<headers>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


def signed_by(request: Request, secrets: Mapping[str, str]) -> str:
    """The access key that signed the request as it arrived; empty where nobody known did. `secrets` holds the secret
    of each access key."""
    found = AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if found is None or found["key"] not in secrets or "host" not in found["headers"].split(";"):
        return ""
    canonical = _canonical(request, found["headers"].split(";"))
    moment = request.headers.get("x-amz-date", "")
    wanted = "\n".join((ALGORITHM, moment, found["scope"], hashlib.sha256(canonical.encode()).hexdigest()))
    key = b"AWS4" + secrets[found["key"]].encode()
    for step in found["scope"].split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, wanted.encode(), "sha256").hex()
    same = hmac.compare_digest(signature, found["signature"]) and moment.startswith(found["scope"][:8])
    return found["key"] if same else ""


def scope(request: Request) -> tuple[str, str]:
    """The region and the service that the signature is for; empty texts where it is none."""
    found = AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    parts = found["scope"].split("/") if found else []
    return (parts[1], parts[2]) if len(parts) > 2 else ("", "")


def _canonical(request: Request, names: list[str]) -> str:
    """The request as text: the path is encoded once more than it is on the wire, as for every service but S3."""
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names)
    body = hashlib.sha256(request.body).hexdigest()
    path = quote(request.path, safe="/~")
    return "\n".join((request.method, path, request.query, headers, ";".join(names), body))
