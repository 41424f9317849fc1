"""AWS Signature Version 4 through botocore, with the default AWS credentials.

They come from the environment, `~/.aws`, a sign-in of `aws sso login`, or the role of the machine, in AWS's order.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from hermes_agent.core.errors import AuthRefused
from hermes_agent.host.late import libraries
from hermes_agent.providers.outcomes import Wire, failure
from hermes_agent.providers.route import Route

SERVICE = "bedrock"
NO_BOTOCORE = "cannot be asked: signing needs botocore (`pip install botocore`, or the extra `bedrock`)."
NO_CREDENTIALS = "cannot be asked: there are no AWS credentials (`aws configure`, or AWS_ACCESS_KEY_ID and the like)."


async def sign(route: Route, url: str, wire: Wire) -> dict[str, str]:
    """The signature headers of this request. Raises `AuthRefused` where there are no credentials."""
    return await asyncio.to_thread(_signed, route, url, wire)


def _signed(route: Route, url: str, wire: Wire) -> dict[str, str]:
    """Reading credentials may ask other machines: not on the event loop."""
    try:
        credentials = _session().get_credentials()
        frozen = credentials and credentials.get_frozen_credentials()
        signer = libraries.aws_auth.SigV4Auth
        request = libraries.aws_request.AWSRequest("POST", url, dict(wire.headers), wire.body)
    except ImportError as error:
        raise failure(route, AuthRefused, NO_BOTOCORE) from error
    except libraries.aws_errors.BotoCoreError as error:
        raise failure(route, AuthRefused, f"cannot be asked: {str(error).rstrip('.')}.") from error
    if frozen is None:
        raise failure(route, AuthRefused, NO_CREDENTIALS)
    signer(frozen, SERVICE, route.region).add_auth(request)
    return {name: str(value) for name, value in request.headers.items() if name.lower() not in wire.headers}


@cache
def _session() -> Any:  # noqa: ANN401 - botocore has no types
    """One for the process: it holds credentials that renew themselves."""
    return libraries.aws_session.get_session()
