"""A study is read whole; what is wrong with it is said with file, field and what is accepted."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from support.studies import STUDY, a_study, a_study_file

from tidings.core.errors import ConfigError
from tidings.pipeline.analyse.question import MEASURES
from tidings.pipeline.sweep.grid import Point, points_of
from tidings.scheduling import POLICIES
from tidings.studies.about import READ_WITH, SERIES_OVER
from tidings.studies.judges import JUDGES
from tidings.studies.report import StudyResult
from tidings.studies.spec import find_study, read_study, study_files

PROJECT = Path(__file__).parents[2]
A_CLAIM = """
[[claim]]
id = "one"
text = "says the paper"
paper = 1.0
metric = "delivery_ratio"
strategy = "d-tree"
kind = "near"
"""


@cache
def quick_points(name: str) -> list[Point]:
    """Of a quick run of one of the project's studies: hundreds, so they are set up once."""
    return points_of(read_study(find_study(name), quick=True).spec)


def test_a_study_is_named_by_its_file(tmp_path: Path) -> None:
    study = read_study(a_study_file(tmp_path))
    assert (study.name, study.spec.name, study.quick) == ("trees", "trees", False)
    assert study.xs("") == (0.0, 0.2, 0.4)


def test_a_quick_study_has_its_own_sweep_and_the_same_name(tmp_path: Path) -> None:
    study = read_study(a_study_file(tmp_path), quick=True)
    assert (study.name, study.spec.name, study.quick) == ("trees", "trees-quick", True)
    assert study.xs("") == (0.0, 0.4)


def test_a_claim_is_about_the_first_setting_and_the_section_of_the_study(tmp_path: Path) -> None:
    settings = (
        '[setting.calm]\n[setting.lossy]\n"links.loss_ratio" = 0.1\n"broker.strategy" = "d-tree"'
    )
    study = a_study(tmp_path, more=settings)
    assert {(claim.setting, claim.section) for claim in study.claims} == {("calm", "IV")}
    assert study.strategies("calm") == ("d-tree", "r-tree")
    assert study.strategies("lossy") == ("d-tree",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("IV", "IV\"\ncolour = \"red"), r"study\.colour is 'red'.*title, paper, figure"),
        (('x = "links.failure_probability"', 'x = "links.loss_ratio"'),
         r"study\.x is 'links\.loss_ratio'.*links\.failure_probability, lateness, subs"),
        (('"packets_per_subscriber"]', '"speed"]'), r"study\.metrics is 'speed'.*delivery_ratio"),
        (('"packets_per_subscriber"]', '"lateness_cdf"]'), r"'lateness_cdf'.*delivery_ratio"),
        (('x = "links.failure_probability"', 'x = "lateness"'),
         r"study\.metrics is 'delivery_ratio'.*one of lateness_cdf"),
        (("[0.0, 0.2, 0.4]", '["a"]'), r"grid\.links\.failure_probability is .*numbers"),
        (('"broker.strategy" = ["d-tree", "r-tree"]', '"links.loss_ratio" = [0]'),
         r"grid is .*broker\.strategy"),
        (("[study]", "[studie]"), r"studie is .*study, claim"),
        (("IV\"", "IV\"\nlines = \"broker.scheduling\""), r"grid is .*broker\.scheduling"),
        (("[grid]", "[grid]\n\"links.loss_ratio\" = [0, 0.1]"),
         r"grid\.links\.loss_ratio is .*one value, or .*only\.delivery_ratio"),
        (("[grid]", "only = { earnings = {} }\n[grid]"), r"study\.only is 'earnings'"),
        (("[grid]", "only = { delivery_ratio = { a = 1 } }\n[grid]"),
         r"study\.only\.delivery_ratio is 'a'.*links\.failure_probability"),
        (("[grid]", 'only = { delivery_ratio = { "broker.strategy" = "dcrd" } }\n[grid]'),
         r"study\.only\.delivery_ratio\.broker\.strategy is 'dcrd'.*d-tree"),
    ],
)  # fmt: skip
def test_a_fault_in_the_argument_names_its_field(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = a_study_file(tmp_path)
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(ConfigError, match=rf"trees\.toml: .*{said}"):
        read_study(path)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (("d-tree", "dcrd"), r"claim one: strategy is 'dcrd'.*d-tree, r-tree"),
        (("delivery_ratio", "on_time_ratio"), r"claim one: metric is 'on_time_ratio'"),
        (('kind = "near"', 'kind = "near"\nx = 0.3'), r"claim one: x is 0\.3.*0\.0, 0\.2, 0\.4"),
        (('kind = "near"', 'kind = "close"'), r"claim\[0\]\.kind is 'close'.*at least, at most"),
        (('kind = "near"', 'kind = "near"\nsetting = "m"'), r"claim one: setting is 'm'"),
        (('kind = "near"', 'kind = "near"\nminus = { strategy = "x" }'), r"strategy is 'x'"),
        (('kind = "near"', 'kind = "near"\nminus = { x = 0.3 }'), r"x is 0\.3"),
        (('kind = "near"', 'kind = "near"\nminus = { y = 1 }'), r"claim\[0\]\.minus\.y is 1"),
        (('kind = "near"', 'kind = "near"\nminus = {}\nover = {}'), r"minus or over, not both"),
        (("1.0", '"all"'), r"claim one: value is missing.*a number to be near"),
        (('kind = "near"', 'kind = "flat"\nx = 0.2'), r"x is 0\.2.*several x, to be flat"),
        (("d-tree", 'd-tree"\nwhere = "here'), r"claim\[0\]\.where is 'here'"),
        (('kind = "near"', f'kind = "near"{A_CLAIM}'), r"claim\.id is 'one'.*no other claim"),
    ],
)
def test_a_fault_in_a_claim_names_the_claim(
    claim: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = a_study_file(tmp_path, claims=A_CLAIM.replace(*claim))
    with pytest.raises(ConfigError, match=rf"trees\.toml: .*{said}"):
        read_study(path)


def test_the_folder_here_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "dcrd-fig2" in study_files()  # the project's
    a_study_file(tmp_path / "studies")
    assert list(study_files()) == ["trees"]  # a sweep or scenario beside it is no study
    assert find_study("trees") == Path("studies/trees.toml")
    with pytest.raises(ConfigError, match=r"name is 'bushes'.*\(in studies\) one of trees"):
        find_study("bushes")
    assert find_study("else/where.toml") == Path("else/where.toml")


def test_where_it_looked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tidings.files.packaged.PACKAGE", tmp_path / "a" / "b")
    with pytest.raises(ConfigError, match=rf"looked in {tmp_path}/studies and {tmp_path}/studies"):
        find_study("trees")


@pytest.mark.parametrize("name", study_files())
def test_every_study_of_the_project_judges_points_that_it_has(name: str) -> None:
    study = read_study(find_study(name))
    assert study.claims
    seeds, quick = study.spec.grid["run.seed"], read_study(find_study(name), quick=True).spec.grid
    if name.startswith("harmony"):  # five runs; one of them is looked at more closely
        assert len(quick["run.seed"]) <= len(seeds)
        return
    # A second in which links break is as much work as a minute in which they hold.
    assert quick["run.seconds"] == ((20,) if name == "churn" else (600,))
    if name.startswith("bounded"):  # whose topologies differ much: seeds 1 to 10 are lucky ones
        assert min(len(seeds), len(quick["run.seed"])) >= 30
        return
    assert len(seeds) >= 10
    assert len(quick["run.seed"]) == 3


@pytest.mark.parametrize("name", ["bounded-fig4", "bounded-fig5", "bounded-fig6", "bounded-both"])
def test_the_studies_of_bounded_delay_compare_policies_in_two_settings(name: str) -> None:
    study = read_study(find_study(name))
    assert study.settings() == ("literal", "fit")
    assert set(study.strategies("fit")) <= set(POLICIES)
    runs = Counter(
        (p.parameters["setting"], p.scenario.broker.scheduling) for p in quick_points(name)
    )
    assert set(runs) == {(s, policy) for s in study.settings() for policy in study.strategies(s)}
    assert len(set(runs.values())) == 1
    claimed = Counter(claim.setting for claim in study.claims)
    assert claimed["literal"] == claimed["fit"]  # each claim is asked of both


@pytest.mark.parametrize("name", [name for name in study_files() if name.startswith("bounded")])
def test_where_publishers_have_no_link_their_brokers_process_what_they_say(name: str) -> None:
    """In both readings a message is processed once at each broker and at no publisher."""
    for point in quick_points(name):
        apart = bool(point.scenario.topology["publishers"])
        assert apart == (point.scenario.links.first_processing_s == 0.0)


@pytest.mark.parametrize("name", [name for name in study_files() if name.startswith("bounded")])
def test_the_message_number_of_bounded_delay_is_what_brokers_receive(name: str) -> None:
    study = read_study(find_study(name))
    assert "message_number" not in study.about.metrics
    assert name == "bounded-fig4" or "messages_received" in study.about.metrics


def test_each_study_on_the_page_is_accepted_and_the_page_names_all_that_there_is(
    tmp_path: Path,
) -> None:
    page = (PROJECT / "docs" / "guide" / "studies.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "scenarios").symlink_to(PROJECT / "scenarios")
    (tmp_path / "studies").mkdir()
    path = tmp_path / "studies" / "page.toml"
    xs = []
    for block in blocks:
        path.write_text(block)
        study = read_study(path, quick=True)
        assert points_of(study.spec)
        xs.append(study.about.x)
    assert xs == ["links.failure_probability", "subscriber", "time"]
    named = {*JUDGES, *StudyResult.__struct_fields__, *READ_WITH, *(f'"{x}"' for x in SERIES_OVER)}
    named |= {metric for metrics in MEASURES.values() for metric in metrics}
    assert {name for name in named if f"`{name}`" not in page} == set()


def test_a_study_of_no_figure_says_so_and_not_none(tmp_path: Path) -> None:
    of_none = a_study_file(tmp_path / "none", study=STUDY.replace('figure = "Figure 1"', ""))
    assert read_study(of_none).about.origin() == "A paper, beyond its figures"
    assert read_study(a_study_file(tmp_path / "one")).about.origin() == "A paper, Figure 1"
    origins = [read_study(path).about.origin() for path in study_files().values()]
    assert not any("None" in origin for origin in origins)
