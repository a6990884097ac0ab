"""Every bad setting is found at the door, and named with what is accepted."""

from math import inf, nan
from typing import Any

import pytest

from tidings.broker.settings import Settings
from tidings.core.contract import Contract, TopicPolicy
from tidings.core.errors import ConfigError
from tidings.routing import ROUTERS
from tidings.routing.options import DcrdOptions, HarmonyOptions
from tidings.scheduling import POLICIES
from tidings.scheduling.options import BenefitOptions

BAD: list[tuple[str, Any, str]] = [
    ("strategy", "magic", ", ".join(sorted(ROUTERS))),
    ("scheduling", "lifo", ", ".join(sorted(POLICIES))),
    ("transmissions", 0, "a whole number from 1"),
    ("retry_every_s", 0.0, "a positive number of seconds"),
    ("waiting_parcels", 0, "a whole number from 1"),
    ("queue_parcels", 0, "a whole number from 1"),
    ("queue_bytes", 0, "a whole number from 1"),
    ("window_bytes", 0, "a whole number from 1"),
    ("ack_timer", 0.0, "a positive number"),
    ("ack_slack_s", -0.1, "a number of seconds from 0"),
    ("probe_every_s", 0.0, "a positive number of seconds"),
    ("probe_timeout_s", -1.0, "a positive number of seconds"),
    ("probes_missed", 0, "a whole number from 1"),
    ("delay_weight", 0.0, "above 0, up to 1"),
    ("delay_weight", 1.1, "above 0, up to 1"),
    ("loss_weight", nan, "above 0, up to 1"),
    ("availability_weight", 0.0, "above 0, up to 1"),
    ("availability_weight", 1.5, "above 0, up to 1"),
    ("availability_weight", nan, "above 0, up to 1"),
    ("report_lifetime_s", 0.0, "a positive number of seconds"),
    ("report_lifetime_s", nan, "a positive number of seconds"),
    ("advertise_every_s", 0.0, "a positive number of seconds"),
    ("advertise_change", -0.1, "a number from 0"),
    ("batch_s", -0.1, "a number of seconds from 0"),
    ("batch_s", nan, "a number of seconds from 0"),
    ("remember_s", 0.0, "a positive number of seconds"),
]


@pytest.mark.parametrize(("field", "value", "accepted"), BAD)
def test_a_bad_setting_names_the_file_the_field_the_value_and_what_is_accepted(
    field: str, value: Any, accepted: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**{field: value}).checked("overlay.toml")
    assert caught.value.source == "overlay.toml"
    assert caught.value.field == f"broker.{field}"
    assert repr(value) in str(caught.value)
    assert accepted in caught.value.accepted


def test_every_numeric_setting_is_checked() -> None:
    unchecked = {"estimates", "exhausted", "trace", "policies"}  # types leave nothing to check
    unchecked |= {"benefit", "dcrd", "harmony"}  # tables of their own
    assert {field for field, _, _ in BAD} == set(Settings.__struct_fields__) - unchecked


@pytest.mark.parametrize("value", [-0.1, nan, inf])
@pytest.mark.parametrize("field", ["tolerance", "deadline_step_s"])
def test_bad_options_of_a_strategy_are_named_with_their_table(field: str, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(dcrd=DcrdOptions(**{field: value})).checked("overlay.toml")
    assert caught.value.field == f"broker.dcrd.{field}"


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("recheck_s", 0.0, "a positive number of seconds"),
        ("recheck_s", inf, "a positive number of seconds"),
        ("recheck_s", nan, "a positive number of seconds"),
        ("improvement", -0.1, "a number from 0 to below 1"),
        ("improvement", 1.0, "a number from 0 to below 1"),
        ("improvement", nan, "a number from 0 to below 1"),
        ("choices", 1, "a whole number from 2 to 1000"),
        ("choices", 1001, "a whole number from 2 to 1000"),
        ("most_paths", 0, "a whole number from 1 to 8"),
        ("most_paths", 9, "a whole number from 1 to 8"),
    ],
)
def test_bad_options_of_harmony_are_named_with_what_is_accepted(
    field: str, value: float, accepted: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(harmony=HarmonyOptions(**{field: value})).checked("overlay.toml")
    assert caught.value.field == f"broker.harmony.{field}"
    assert caught.value.accepted == accepted


@pytest.mark.parametrize("value", [-0.1, nan, inf])
@pytest.mark.parametrize("field", ["weight", "unlikely", "postponement"])
def test_bad_options_of_the_policies_are_named_with_their_table(field: str, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(benefit=BenefitOptions(**{field: value})).checked("overlay.toml")
    assert caught.value.field == f"broker.benefit.{field}"


def test_the_defaults_are_accepted_as_they_are() -> None:
    settings = Settings()
    assert settings.checked("here") is settings


@pytest.mark.parametrize(
    ("contract", "field"),
    [
        (Contract(deadline_s=0.0), "deadline_s"),
        (Contract(price=inf), "price"),
        (Contract(reliability=1.5), "reliability"),
        (Contract(availability=-0.5), "availability"),
        (Contract(strategy="magic"), "policy.strategy"),
        (Contract(scheduling="lifo"), "policy.scheduling"),
    ],
)
def test_a_bad_topic_policy_is_found_too(contract: Contract, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(policies=(TopicPolicy("a/#", contract),)).checked("overlay.toml")
    assert caught.value.field == field
    assert caught.value.source.startswith("overlay.toml")
