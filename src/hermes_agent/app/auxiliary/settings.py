"""Settings section `auxiliary`: which background model serves each purpose, and its limits."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.spending import Limit, Scope, limit_of
from hermes_agent.host.schema import section, setting


class Purpose(StrEnum):
    """Purposes of auxiliary model calls, as recorded in the usage ledger."""

    COMPRESSION = "compression"
    TITLE = "title"
    REVIEW = "review"
    CURATOR = "curator"
    VISION = "vision"
    JUDGE = "judge"
    WEB = "web"
    MCP = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryModel:
    """Settings of the model for one purpose, with its limits; None means no limit of its own."""

    model: str = setting("", "The model to ask: vendor/model. Empty: the session's model.")
    seconds: float | None = setting(None, "Seconds that one answer may take; empty means no limit of its own.", least=1)
    money: float | None = setting(None, "US dollars a day for this purpose; empty means no limit of its own.", least=0)
    tokens: int | None = setting(
        None, "Tokens a day for this purpose, in and out; empty means no limit of its own.", least=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleModel(AuxiliaryModel):
    """Settings of the model that writes session titles."""

    enabled: bool = setting(
        True, "Whether a chat gets a title, by one call after its first reply; `hermes -z` makes none."
    )


def within(seconds: float) -> AuxiliaryModel:
    """Settings with this time limit in seconds."""
    return AuxiliaryModel(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliarySettings:
    """The section `auxiliary`: one `AuxiliaryModel` for each `Purpose`, under its name."""

    compression: AuxiliaryModel = section(
        AuxiliaryModel, "Summaries of long conversations; if it fails, the session's model writes them."
    )
    title: TitleModel = section(lambda: TitleModel(seconds=30.0), "Titles of conversations.")
    review: AuxiliaryModel = section(AuxiliaryModel, "Reviews of conversations, for notes and skills.")
    curator: AuxiliaryModel = section(AuxiliaryModel, "The curator of the agent's skills.")
    vision: AuxiliaryModel = section(
        lambda: within(60.0),
        "Describes pictures to a model that sees none. Empty: that model only learns that there is one.",
    )
    judge: AuxiliaryModel = section(
        lambda: within(30.0),
        "Judges commands before a person is asked (`approvals.mode: smart`), and criteria of goals that are in words.",
    )
    web: AuxiliaryModel = section(lambda: within(60.0), "Answers questions about long web pages.")
    mcp: AuxiliaryModel = section(lambda: within(60.0), "Answers what MCP servers ask that may (`sampling`).")

    def of(self, purpose: Purpose) -> AuxiliaryModel:
        """The settings of one purpose."""
        found: AuxiliaryModel = getattr(self, purpose)
        return found

    @property
    def limits(self) -> list[Limit]:
        """The daily money and token limits that are set."""
        given = {purpose: self.of(purpose) for purpose in Purpose}
        found = [limit_of(Scope.PURPOSE, each.money, each.tokens, purpose) for purpose, each in given.items()]
        return [limit for limit in found if limit is not None]
