"""Every bad setting is found at the door, and named with what is accepted."""

from math import inf, nan
from typing import Any

import pytest

from tidings.broker.settings import Settings
from tidings.core.contract import Contract, TopicPolicy
from tidings.core.errors import ConfigError
from tidings.linking import LINKERS
from tidings.routing import ROUTERS
from tidings.routing.options import DcrdOptions, HarmonyOptions
from tidings.scheduling import POLICIES
from tidings.scheduling.options import BenefitOptions

BAD: list[tuple[str, Any, str]] = [
    ("strategy", "magic", ", ".join(sorted(ROUTERS))),
    ("scheduling", "lifo", ", ".join(sorted(POLICIES))),
    ("linking", "star", ", ".join(sorted(LINKERS))),
    ("interests", -1, "a whole number, 0 or more, or everywhere"),
    ("interests", "everywher", "everywhere. Did you mean 'everywhere'?"),
    ("interests", 2.5, "a whole number, 0 or more, or everywhere"),
    ("transmissions", 0, "int >= 1"),
    ("retry_every_s", 0.0, "float > 0.0"),
    ("waiting_parcels", 0, "int >= 1"),
    ("waiting_bytes", 0, "int >= 1"),
    ("queue_parcels", 0, "int >= 1"),
    ("queue_bytes", 0, "int >= 1"),
    ("window_bytes", 0, "int >= 1"),
    ("ack_timer", 0.0, "float > 0.0"),
    ("ack_slack_s", -0.1, "float >= 0.0"),
    ("probe_every_s", 0.0, "float > 0.0"),
    ("probe_timeout_s", -1.0, "float > 0.0"),
    ("probes_missed", 0, "int >= 1"),
    ("suspect_after_s", 0.0, "float > 0.0"),
    ("grace_s", -0.1, "float >= 0.0"),
    ("delay_window_s", -1.0, "float >= 0.0"),
    ("least_delay_s", -0.1, "float >= 0.0"),
    ("delay_weight", 0.0, "float > 0.0"),
    ("delay_weight", 1.1, "float <= 1.0"),
    ("loss_weight", nan, "float > 0.0"),
    ("availability_weight", 0.0, "float > 0.0"),
    ("availability_weight", 1.5, "float <= 1.0"),
    ("availability_weight", nan, "float > 0.0"),
    ("report_lifetime_s", 0.0, "float > 0.0"),
    ("report_lifetime_s", nan, "float > 0.0"),
    ("advertise_every_s", 0.0, "float > 0.0"),
    ("advertise_change", -0.1, "float >= 0.0"),
    ("unheard_s", 0.0, "float > 0.0"),
    ("batch_s", -0.1, "float >= 0.0"),
    ("batch_s", nan, "float >= 0.0"),
    ("remember_s", 0.0, "float > 0.0"),
    ("late_takers_s", -1.0, "float >= 0.0"),
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
    unchecked |= {"benefit", "dcrd", "harmony", "linker"}  # tables of their own
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
        ("recheck_s", 0.0, "float > 0.0"),
        ("recheck_s", inf, "float <= 1000000000.0"),
        ("recheck_s", nan, "float > 0.0"),
        ("improvement", -0.1, "float >= 0.0"),
        ("improvement", 1.0, "float < 1.0"),
        ("improvement", nan, "float >= 0.0"),
        ("choices", 1, "int >= 2"),
        ("choices", 1001, "int <= 1000"),
        ("most_paths", 0, "int >= 1"),
        ("most_paths", 9, "int <= 8"),
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
