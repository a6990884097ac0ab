"""A live broker starts from what was learned of its links."""

from pathlib import Path
from typing import Any

import pytest
from support.link_models import a_link, a_model_file

from tidings.core.errors import ConfigError, FileError
from tidings.core.links.estimates import LinkEstimate
from tidings.live.config import BrokerConfig, parse


def a_config(model: Path, **more: Any) -> BrokerConfig:
    neighbours = [{"name": name, "port": 7001} for name in ("b", "c", "d")]
    neighbours[2] |= {"estimate": {"delay_ms": 7.0}}
    document = {"name": "a", "neighbour": neighbours, "link_model": str(model)} | more
    return parse(document, "a.toml")


def test_links_start_as_stated_as_learned_or_unknown(tmp_path: Path) -> None:
    learned = (a_link("a", "b", availability=0.9), a_link("c", "a"), a_link("a", "d"))
    known = a_config(a_model_file(tmp_path / "m.parquet", *learned)).known()
    assert known == {
        "b": LinkEstimate(0.030, availability=0.9),
        "c": None,  # the other direction is for c to know
        "d": LinkEstimate(0.007),
    }


def test_pinned_estimates_may_be_learned_but_must_be_there(tmp_path: Path) -> None:
    pinned = {"broker": {"estimates": "pinned"}}
    model = a_model_file(tmp_path / "m.parquet", a_link("a", "b"), a_link("a", "c"))
    assert a_config(model, **pinned).known()["c"] is not None
    with pytest.raises(ConfigError, match=r"neighbour\[1\].estimate"):
        a_config(a_model_file(tmp_path / "n.parquet", a_link("a", "b")), **pinned)


def test_a_file_that_is_no_model_is_refused_before_anything_listens(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"No such file .*\(named by a.toml: link_model\)"):
        a_config(tmp_path / "nothing.parquet")
