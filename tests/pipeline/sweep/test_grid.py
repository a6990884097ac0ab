"""A spec becomes scenarios, and what is wrong with it is said where it was written."""

from pathlib import Path

import msgspec
import pytest
from support.sweeps import a_spec

from tidings.core.errors import ConfigError, FileError
from tidings.pipeline.sweep.grid import points_of, read_spec
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up

PROJECT = Path(__file__).parents[3]


def test_every_combination_is_a_point_named_by_its_scenario(tmp_path: Path) -> None:
    points = points_of(read_spec(a_spec(tmp_path)))
    assert [p.parameters for p in points] == [
        {"broker.strategy": "d-tree", "run.seed": 1},
        {"broker.strategy": "d-tree", "run.seed": 2},
        {"broker.strategy": "r-tree", "run.seed": 1},
        {"broker.strategy": "r-tree", "run.seed": 2},
    ]
    for point in points:
        assert point.name == set_up(load(tmp_path / "tiny.toml", point.parameters)).digest
    assert len({point.name for point in points}) == 4


def test_names_need_no_quotes(tmp_path: Path) -> None:
    quoted = read_spec(a_spec(tmp_path / "a", '"run.seed" = [1, 2]\n"run.seconds" = [5]'))
    bare = read_spec(
        a_spec(tmp_path / "b", "run.seed = { from = 1, count = 2 }\nrun.seconds = [5]")
    )
    assert bare.grid == quoted.grid == {"run.seed": (1, 2), "run.seconds": (5,)}


def test_a_parameter_may_be_a_list_and_a_value_of_the_topology(tmp_path: Path) -> None:
    grid = '"topology.delay_ms" = [[10, 20], [30, 40]]\n"topology.brokers" = [3, 4]'
    points = points_of(read_spec(a_spec(tmp_path, grid)))
    assert [len(set_up(p.scenario).overlay.brokers) for p in points] == [3, 4, 3, 4]
    assert all(10e-3 <= link.delay_s <= 20e-3 for link in set_up(points[0].scenario).overlay.links)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ('"links.speed" = [1]', r"spec\.toml: grid\.links\.speed is 1.*loss_ratio"),
        ('"broker.strategy" = ["d-tree", "magic"]', r"grid\.broker\.strategy is 'magic'.*r-tree"),
        ('"links.loss_ratio" = [0.1, 2]', r"grid\.links\.loss_ratio is 2.*<= 1"),
        ('"links.loss_ratio" = ["a"]', r"grid\.links\.loss_ratio is 'a'.*float"),
        ('"topology.brokers" = [0]', r"grid\.topology\.brokers is 0"),
        ('"topology.colour" = ["red"]', r"spec\.toml: grid.*brokers, delay_ms"),
        ('"workload.topics" = [9]', r"grid\.workload\.topics is 9.*at most one topic per broker"),
        ('"seed" = [1]', r"grid is 'seed'.*links\.loss_ratio"),
        ('"run.seed.x" = [1]', r"grid\.run\.seed\.x is 1.*int"),
        ('"broker.dcrd.order" = ["by name"]', r"grid\.broker\.dcrd\.order is 'by name'.*theorem-1"),
        ('"live.host" = ["a", "b"]', r"grid is 'live\.host'.*tables: run, topology"),
        ('"run.seed" = 3', r"grid\.run\.seed is 3.*a list of values, or \{ from"),
        ('"run.seed" = []', r"grid\.run\.seed is \[\].*at least one value"),
        ('"run.seed" = [1, 1]', r"grid is .*the same with \{'run\.seed': 1\}"),
        ('"run.seed" = { from = 1 }', r"grid\.run\.seed is .*count = 10"),
        ('"run.seed" = { from = 1, count = 100000 }\n"links.loss_ratio" = [0, 1]', "200000 points"),
    ],
)
def test_a_fault_in_the_grid_names_the_spec_and_what_is_accepted(
    grid: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        points_of(read_spec(a_spec(tmp_path, grid)))


def test_a_fault_of_the_scenario_is_not_blamed_on_the_grid(tmp_path: Path) -> None:
    spec = a_spec(tmp_path, scenario="[run]\nspeed = 3\n")
    with pytest.raises(ConfigError, match=r"tiny\.toml: run\.speed is 3"):
        points_of(read_spec(spec))


def test_a_spec_says_what_it_misses(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    with pytest.raises(FileError, match=r"spec\.toml: No such file or directory\.$"):
        read_spec(spec)
    spec.write_text('name = "a/b"\nscenario = "x.toml"\n[grid]\n')
    with pytest.raises(ConfigError, match=r"name is 'a/b'.*letters"):
        read_spec(spec)
    spec.write_text('name = "a"\nscenario = "x.toml"\ngird = 1\n[grid]\n')
    with pytest.raises(
        ConfigError, match=r"gird is 1.*name, scenario, grid.*Did you mean 'grid'\?$"
    ):
        read_spec(spec)
    spec.write_text('name = "a"\nscenario = "x.toml"\n[grid]\n')
    with pytest.raises(
        FileError, match=r"x\.toml: No such file .*named by .*spec\.toml: scenario\)"
    ):
        points_of(read_spec(spec))


SETTINGS = """
"broker.strategy" = ["d-tree", "r-tree"]
"links.failure_probability" = [0.0, 0.1]
[setting.calm]
[setting.sparse]
topology = { kind = "random-degree", brokers = 6, degree = 3 }
"broker.strategy" = "r-tree"
"links.failure_probability" = [0.1]
links.loss_ratio = 0.5
"""


def test_the_grid_is_run_in_each_setting_and_narrowed_where_one_says_so(tmp_path: Path) -> None:
    points = points_of(read_spec(a_spec(tmp_path, SETTINGS)))
    assert [point.parameters["setting"] for point in points] == ["calm"] * 4 + ["sparse"]
    assert points[-1].parameters == {
        "setting": "sparse",
        "broker.strategy": "r-tree",
        "links.failure_probability": 0.1,
    }
    assert [point.scenario.links.loss_ratio for point in points] == [0.0] * 4 + [0.5]


def test_another_kind_of_topology_takes_the_place_of_all_of_the_scenarios(tmp_path: Path) -> None:
    scenario = points_of(read_spec(a_spec(tmp_path, SETTINGS)))[-1].scenario
    assert scenario.topology == {"kind": "random-degree", "brokers": 6, "degree": 3}


def test_a_quick_look_has_other_values_and_another_name(tmp_path: Path) -> None:
    grid = '"run.seed" = [1, 2]\n"links.loss_ratio" = [0.0, 0.1]\n'
    spec = read_spec(a_spec(tmp_path, grid + '[quick]\n"run.seed" = [7]\n"run.seconds" = [2]'))
    assert len(points_of(spec)) == 4
    quick = spec.quickened()
    assert quick.name == "tiny-quick"
    assert [point.parameters for point in points_of(quick)] == [
        {"run.seed": 7, "links.loss_ratio": 0.0, "run.seconds": 2},
        {"run.seed": 7, "links.loss_ratio": 0.1, "run.seconds": 2},
    ]


def test_a_spec_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    spec.write_text(spec.read_text().replace('name = "tiny"\n', ""))
    assert read_spec(spec).name == "spec"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('"links.speed" = 1', r"setting\.a\.links\.speed is 1.*loss_ratio"),
        ('"links.loss_ratio" = 2', r"setting\.a\.links\.loss_ratio is 2"),
        ('"topology.kind" = "ring"', r"setting\.a.* is .*full-mesh"),
        ('"speed" = 1', r"setting\.a is 'speed'.*such as links\.loss_ratio"),
        ('"run.seed" = []', r"setting\.a\.run\.seed is \[\].*at least one value"),
    ],
)
def test_a_fault_in_a_setting_names_the_setting(setting: str, said: str, tmp_path: Path) -> None:
    spec = a_spec(tmp_path, f'"run.seed" = [1]\n[setting.a]\n{setting}')
    with pytest.raises(ConfigError, match=said):
        points_of(read_spec(spec))


def test_every_study_of_the_project_can_be_run() -> None:
    specs = sorted((PROJECT / "studies").glob("*.toml"))
    assert specs
    for spec in map(read_spec, specs):
        short = spec.quickened()  # all of it, but for the number of seeds
        assert points_of(msgspec.structs.replace(short, grid=short.grid | {"run.seed": (1,)}))


@pytest.mark.parametrize(
    ("parameter", "meant"),
    [
        ("link.loss_ratio", "links.loss_ratio"),
        ("links.los_ratio", "loss_ratio"),
        ("loss_ratio", "links.loss_ratio"),
    ],
)
def test_a_misspelt_parameter_is_met_with_the_one_meant(
    parameter: str, meant: str, tmp_path: Path
) -> None:
    spec = a_spec(tmp_path, f'"{parameter}" = [0.1]')
    with pytest.raises(ConfigError) as caught:
        points_of(read_spec(spec))
    assert str(caught.value).endswith(f" Did you mean '{meant}'?")
