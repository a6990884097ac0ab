"""The pages of the guide say what the code does."""

from __future__ import annotations

import re
import tomllib

import msgspec
import pytest
from support.docs_tables import shown
from support.pages import ROOT, toml_blocks

from tidings.broker.settings import Settings
from tidings.core.policy import Policy
from tidings.linking.options import LinkingOptions
from tidings.live.config import parse
from tidings.routing.options import DcrdOptions, HarmonyOptions
from tidings.scenarios.overlay import GENERATORS
from tidings.scheduling.options import BenefitOptions
from tidings.sim import scenario

GUIDE = ROOT / "docs" / "guide"
TABLES: dict[str, type[msgspec.Struct]] = {
    "[run]": scenario.Run,
    "[links]": scenario.LinkDefaults,
    "[broker]": Settings,
    "[broker.dcrd]": DcrdOptions,
    "[broker.harmony]": HarmonyOptions,
    "[broker.benefit]": BenefitOptions,
    "[broker.linker]": LinkingOptions,
    "[[policy]]": Policy,
    "[workload]": scenario.Workload,
    "[workload.content]": scenario.Content,
    "[[workload.publisher]]": scenario.Publisher,
    "[[workload.subscriber]]": scenario.Subscriber,
    "[faults]": scenario.Faults,
    "[faults.slots]": scenario.Slots,
    "[[faults.schedule]]": scenario.Fault,
    "[dynamics]": scenario.Dynamics,
    "[[dynamics.absence]]": scenario.Absence,
    "[live]": scenario.Live,
} | {f'kind = "{kind}"': parameters for kind, parameters in GENERATORS.items()}
NOT_IN_ITS_TABLE = {  # but in one of their own
    *("policies", "dcrd", "harmony", "benefit", "linker"),
    *("content", "publisher", "subscriber", "schedule", "slots", "absence"),
}


@pytest.mark.parametrize("title", TABLES)
def test_every_parameter_stands_on_the_page_with_its_default(title: str) -> None:
    page = (GUIDE / "scenario.md").read_text()
    section = re.split(r"^##+ ", page.partition(f"# `{title}`\n")[2], flags=re.MULTILINE)[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE))
    fields = msgspec.structs.fields(TABLES[title])
    assert documented == {f.name: shown(f) for f in fields if f.name not in NOT_IN_ITS_TABLE}


def test_the_configurations_on_the_page_are_accepted_and_name_each_other() -> None:
    blocks = toml_blocks(GUIDE / "run-a-broker.md")
    delft, turin, newcomer, first = (parse(tomllib.loads(block), "page") for block in blocks)
    assert [n.name for n in delft.neighbour] == [turin.name]
    assert [n.name for n in turin.neighbour] == [delft.name]
    assert delft.neighbour[0].port == turin.link_port
    assert delft.settings().policies[0].contract.late == "drop"
    assert [member.port for member in newcomer.member] == [first.link_port]
    assert first.links_itself
