"""A file that cannot be read as TOML is one clear error, whatever is wrong with it."""

from pathlib import Path

import pytest

from tidings.core.errors import ConfigError, FileError
from tidings.files.toml import read_toml


@pytest.mark.parametrize(
    ("content", "field"), [(b"x = ", "syntax"), (b"x = 1\nx = 2", "syntax"), (b"\xff\xfe", "file")]
)
def test_a_file_that_is_no_toml_is_one_clear_error(
    tmp_path: Path, content: bytes, field: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert (caught.value.source, caught.value.field) == (str(path), field)


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(FileError, match=rf"^{path}: (No such file|Is a) .*directory\.$"):
            read_toml(path)
    with pytest.raises(FileError, match=r"\(named by sweep\.toml: scenario\)\.$"):
        read_toml(tmp_path / "none.toml", "sweep.toml: scenario")


def test_whoever_changes_a_document_changes_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[a]\nb = [1]\n")
    read_toml(path)["a"]["b"].append(2)
    assert read_toml(path) == {"a": {"b": [1]}}
    path.write_text("[a]\nb = [3]\n")
    assert read_toml(path) == {"a": {"b": [3]}}
