"""A contract may name the scheduling policy: in a file, and by a user property; unknown ones are
refused by name wherever a live broker could hear of them."""

from pathlib import Path

import pytest
from support.live import PahoClient, an_overlay, eventually
from support.statements import refusals

from tidings.core.contract import BEST_EFFORT, Contract
from tidings.core.errors import ConfigError, WireError
from tidings.live.config import parse
from tidings.live.mqtt.statements import Publications
from tidings.mqtt.packets import Publish
from tidings.mqtt.properties import Properties
from tidings.mqtt.reasons import ReasonCode
from tidings.scheduling import POLICIES

ACCEPTED = f"one of {', '.join(sorted(POLICIES))}."


def test_a_topic_policy_names_one() -> None:
    config = parse({"name": "n1", "policy": [{"topic": "a/#", "scheduling": "eb"}]}, "n1.toml")
    (policy,) = config.settings().policies
    assert policy.contract == Contract(scheduling="eb")


def test_an_unknown_one_in_a_file_is_named_with_what_is_accepted() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"name": "n1", "policy": [{"topic": "a/#", "scheduling": "lifo"}]}, "n1.toml")
    named = f"n1.toml: policy.scheduling is 'lifo', but accepted is: {ACCEPTED}"
    assert str(caught.value) == f"{named} Did you mean 'fifo'?"


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_publisher_states_one(policy: str) -> None:
    pairs = (("scheduling", policy),)
    packet = Publish("t", b"", properties=Properties(user_properties=pairs))
    message = Publications(lambda topic: Contract(scheduling="rl", price=2.0)).message(
        1, packet, "c"
    )
    assert message.contract == Contract(scheduling=policy, price=2.0)


@pytest.mark.parametrize(
    ("stated", "shown", "hint"),
    [
        ("lifo", "'lifo'", " Did you mean 'fifo'?"),
        ("EB", "'EB'", " Did you mean 'eb'?"),
        ("x" * 100, f"'{'x' * 80}...'", ""),
    ],
)
def test_an_unknown_one_is_refused(stated: str, shown: str, hint: str) -> None:
    named = f"user property scheduling is {shown}, but accepted is: {ACCEPTED}{hint}"
    for refusal in refusals((("scheduling", stated),)):
        assert str(refusal) == named
        assert refusal.code == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR


@pytest.mark.parametrize("pairs", [(("scheduling", ""),), (("scheduling", "eb"),) * 2])
def test_none_and_two_are_refused(pairs: tuple[tuple[str, str], ...]) -> None:
    packet = Publish("t", b"", properties=Properties(user_properties=pairs))
    with pytest.raises(WireError, match="user property scheduling is"):
        Publications(lambda topic: BEST_EFFORT).message(1, packet, "c")


def test_a_client_of_another_make_is_served_or_told_why_not(tmp_path: Path) -> None:
    with an_overlay(tmp_path, "a", "b") as overlay:
        listener, speaker = PahoClient(overlay.port("b")), PahoClient(overlay.port("a"))
        listener.subscribe("t")
        overlay.until_known(1)
        speaker.publish("t", "kept", scheduling="eb")
        eventually(lambda: listener.messages == [("t", b"kept")])
        speaker.publish("t", "refused", scheduling="lifo")
        eventually(lambda: speaker.disconnected)
        ((_, properties),) = speaker.disconnected
        assert "scheduling is 'lifo'" in properties.ReasonString
        listener.close()
        speaker.close()
