"""A link model is read back as it was written, and nothing else is taken for one."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.link_models import a_link, a_model_file, model_table

from tidings.core.errors import ConfigError, FileError
from tidings.core.links.estimates import LinkEstimate
from tidings.core.links.model import LearnedLink
from tidings.files.link_model import read_link_model


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_link_model(path, "broker.toml", "link_model")
    assert (caught.value.source, caught.value.field) == ("broker.toml", "link_model")
    return caught.value.accepted


def test_a_model_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    whole = a_link("a", "b", hourly_factors=tuple(map(float, range(24))), group=3)
    bare = LearnedLink(source="b", target="a", samples=0, delay_reason="nothing was answered")
    model = read_link_model(a_model_file(tmp_path / "m.parquet", whole, bare, slice_s=7.5))
    assert model.links == {("a", "b"): whole, ("b", "a"): bare}
    assert model.slice_s == 7.5
    assert model.hosts() == ["a", "b"]


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = a_model_file(tmp_path / "m.parquet", a_link("a", "b"))
    assert read_link_model(path).hosts() == ["a", "b"]
    a_model_file(path, a_link("a", "b"), a_link("c", "d"))
    assert read_link_model(path).hosts() == ["a", "b", "c", "d"]


def test_a_link_is_believed_as_it_was_learned() -> None:
    link = a_link(
        "a",
        "b",
        delivery_ratio=0.9,
        availability=0.8,
        transfer_mean_s_per_kilobyte=0.008,
        transfer_variance_s2_per_kilobyte2=4e-6,
    )
    estimate = link.estimate()
    assert estimate is not None
    assert estimate.is_sane()
    believed = (estimate.delay_s, estimate.delivery_ratio, estimate.availability)
    assert believed == (0.030, 0.9, 0.8)
    assert estimate.s_per_byte == pytest.approx(8e-6)
    assert estimate.deviation_s_per_byte == pytest.approx(2e-6)


def test_what_was_not_learned_is_not_believed() -> None:
    assert LearnedLink(source="a", target="b", samples=0).estimate() is None
    plain = LearnedLink(source="a", target="b", samples=1, delay_mean_s=0.02)
    assert plain.estimate() == LinkEstimate(0.02)


def test_other_files_are_refused_with_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    with pytest.raises(FileError, match=r"No such file .*\(named by broker\.toml: link_model\)"):
        read_link_model(path, "broker.toml", "link_model")
    path.write_text("not Parquet")
    assert "a link model" in refused(path)
    pq.write_table(pa.table({"slice": [1]}), path)
    assert "this Parquet file is none" in refused(path)


def test_a_model_of_another_version_or_without_a_column_is_refused(tmp_path: Path) -> None:
    table, path = model_table([a_link("a", "b")], 10.0), tmp_path / "m.parquet"
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"version": b"9"}), path)
    assert "its version is 9, read is 2; learn it again" in refused(path)
    pq.write_table(table.drop_columns(["availability"]), path)
    assert "the column availability is missing" in refused(path)
    pq.write_table(table.slice(0, 0), path)
    assert "there is no link in it" in refused(path)


@pytest.mark.parametrize(
    "impossible",
    [
        {"availability": 1.5},
        {"delay_scale_s": -1.0},
        {"delay_mean_s": float("inf")},
        {"hourly_factors": (1.0,)},
        {"persistence": float("nan")},
    ],
)
def test_numbers_that_no_link_can_have_are_refused(
    impossible: dict[str, object], tmp_path: Path
) -> None:
    assert "of the link a-b" in refused(
        a_model_file(tmp_path / "m.parquet", a_link("a", "b", **impossible))
    )
