"""docs/models.md tells every vendor and dialect with the facts that the program has."""

from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.local import USUAL_PLACES
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.vendor import LEVELS, Vendor
from hermes_agent.providers.vendors import VENDORS
from tests.docs.pages import code, out_of_step, page, table


def row_of(vendor: Vendor) -> tuple[str, ...]:
    """A vendor's facts as a row of the page."""
    optional = "" if vendor.needs_key or not vendor.key_names else ", if it wants one"
    return (
        f"`{vendor.name}`",
        vendor.title,
        f"`{vendor.dialect}`",
        _code(vendor.default_model) or "name one",
        f"{_code(*vendor.key_names) or ('a sign-in' if vendor.sign_in else 'none')}{optional}",
        _code(vendor.base_url) or ("in this process" if vendor.server or vendor.mixes else "`model.base_url`"),
        _code(vendor.base_url_env) or "-",
    )


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words if word)


def untrue(text: str) -> list[str]:
    real = [" | ".join(row_of(load_vendor(name))) for name in VENDORS]
    return out_of_step((" | ".join(row) for row in table(text, "vendor")), real)


def test_every_vendor_is_told_as_it_is():
    assert untrue(page("models.md")) == []


def test_the_vendors_stand_in_the_order_of_first_choice():
    assert [code(row[0])[0] for row in table(page("models.md"), "vendor")] == list(VENDORS)


def test_every_dialect_is_told():
    assert out_of_step((code(row[0])[0] for row in table(page("models.md"), "dialect")), DIALECTS) == []


def test_every_level_of_reasoning_and_every_usual_place_is_told():
    words = set(code(page("models.md")))
    assert set(LEVELS) <= words
    assert {place.base_url for place in USUAL_PLACES} <= words


def test_a_vendor_that_changed_is_found():
    assert len(untrue(page("models.md").replace("`ANTHROPIC_API_KEY`", "`ANTHROPIC_KEY`"))) == 2
