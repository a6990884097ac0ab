"""From a TOML file to checked values: where a person's mistakes are found, and named."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from tidings.core.document import changed, convert
from tidings.core.errors import ConfigError


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    size: Annotated[int, Meta(ge=1)] = 1


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    ratio: float = 0.5
    kind: Literal["round", "square"] = "round"
    rows: tuple[Row, ...] = ()


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    title: str = ""
    table: Table = Table()


def test_a_good_document_becomes_a_value() -> None:
    found = convert({"table": {"ratio": 1, "rows": [{"name": "a"}]}}, Document, "f.toml")
    assert found == Document("", Table(1.0, "round", (Row("a"),)))


@pytest.mark.parametrize(
    ("document", "field", "value", "accepted"),
    [
        ({"title": 5}, "title", 5, "str"),
        ({"titel": "x"}, "titel", "x", "one of the fields title, table"),
        ({"table": 5}, "table", 5, "a table"),
        ({"table": {"ratio": "x"}}, "table.ratio", "x", "float"),
        ({"table": {"kind": "oval"}}, "table.kind", "oval", "one of round, square"),
        ({"table": {"row": []}}, "table.row", [], "one of the fields ratio, kind, rows"),
        ({"table": {"rows": {}}}, "table.rows", {}, "array"),
        ({"table": {"rows": [{"name": "a"}, {"size": 2}]}}, "table.rows[1]", {"size": 2}, "name"),
        ({"table": {"rows": [{"name": "a", "size": 0}]}}, "table.rows[0].size", 0, ">= 1"),
        (
            {"table": {"rows": [{"name": "a", "sise": 1}]}},
            "table.rows[0].sise",
            1,
            "one of the fields name, size",
        ),
    ],
)
def test_a_mistake_is_named_with_file_field_value_and_what_is_accepted(
    document: dict[str, Any], field: str, value: Any, accepted: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        convert(document, Document, "f.toml")
    error = caught.value
    assert (error.source, error.field, error.value) == ("f.toml", field, value)
    assert accepted in error.accepted
    assert "\n" not in str(error)


def test_a_document_itself_of_another_kind_is_an_error_too() -> None:
    with pytest.raises(ConfigError) as caught:
        convert([], Document, "f.toml")  # type: ignore[arg-type]
    assert caught.value.field == "document"


def test_changes_replace_values_in_tables_and_leave_the_document_alone() -> None:
    document = {"title": "a", "table": {"ratio": 0.1, "kind": "round"}}
    result = changed(document, {"title": "b", "table.ratio": 0.2, "other.deep.x": 1})
    assert result == {
        "title": "b",
        "table": {"ratio": 0.2, "kind": "round"},
        "other": {"deep": {"x": 1}},
    }
    assert document == {"title": "a", "table": {"ratio": 0.1, "kind": "round"}}


@pytest.mark.parametrize("dotted", ["title.x", "rows.x", "rows.x.y"])
def test_a_change_inside_of_what_is_no_table_is_an_error(dotted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        changed({"title": "a", "rows": [{"name": "a"}]}, {dotted: 1})
    assert caught.value.field == dotted
