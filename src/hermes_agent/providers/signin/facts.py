"""What is known of one vendor's sign-in: where one signs in, and how its tokens are got, renewed and shown."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """The facts of one sign-in.

    `issuer` has no slash at its end; `issuer_env` is the name under which another one is. `client_id` is the public
    name of the program that signs in; empty: the vendor gives one to each program or organisation, and a person puts
    theirs under `client_id_env`. `way` is `device` (a code is typed at `page`) or `code` (the page shows a code that is
    pasted here). `asks` is the form of the request for the first tokens. `headers` go with every model request;
    `{account}` in them is the account's id, which `account_claim` names in the token (`claim/inner`). `scope` is asked
    for. `allowed` says, as a sentence, where the vendor's terms allow it.
    """

    vendor: str
    title: str
    issuer: str
    issuer_env: str
    way: Literal["device", "code"]
    page: str
    token_path: str
    client_id: str = ""
    client_id_env: str = ""
    asks: Literal["json", "form"] = "form"
    redirect: str = ""
    scope: str = ""
    account_claim: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    allowed: str = ""
