"""The machine's time zone."""

from pathlib import Path

from hermes_agent.host.time_zone import machine_zone, tz_version


def test_a_machine_has_the_zone_of_tz_or_of_its_link_or_utc(tmp_path: Path):
    link, data = tmp_path / "localtime", tmp_path / "zoneinfo" / "Europe" / "Rome"
    data.parent.mkdir(parents=True)
    data.touch()
    link.symlink_to(data)
    assert machine_zone({}, link) == "Europe/Rome"
    assert machine_zone({"TZ": ":Asia/Tokyo"}, link) == "Asia/Tokyo"
    assert machine_zone({"TZ": "CET-1CEST"}, link) == "Europe/Rome"
    assert machine_zone({}, tmp_path / "none") == "UTC"


def test_the_data_of_zones_has_a_version():
    assert tz_version()
