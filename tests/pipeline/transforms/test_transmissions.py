"""Every attempt to send a message has its outcome, and what the outcome tells."""

import pytest
from pyspark.sql import SparkSession
from support.traces import tables_of

from tidings.core.trace import Acknowledged, Forwarded, Row
from tidings.pipeline.transforms.transmissions import OUTCOMES, transmissions

pytestmark = pytest.mark.xdist_group("spark")


def sent(at: float, transmission: int, attempt: int = 1, broker: str = "a") -> Row:
    return Forwarded(at, broker, 7, "b", transmission, attempt, 1, 100)


ROWS = (
    sent(1.0, 1),
    Acknowledged(1.1, "a", "b", 1, 0.1),
    Acknowledged(1.2, "a", "b", 1, 0.2),  # the answer to a copy on the way
    sent(2.0, 2),
    sent(3.0, 2, attempt=2),
    Acknowledged(3.1, "a", "b", 2, 0.1),
    sent(4.0, 3),
    sent(5.0, 4),
    Acknowledged(5.0, "a", "b", 4, -1.0),  # a clock that was set back
    sent(6.0, 1, broker="c"),  # another broker counts for itself
)


def test_an_attempt_is_acknowledged_if_it_is_the_last_and_its_transmission_was(
    spark: SparkSession,
) -> None:
    tables = tables_of({"r": [*ROWS, ROWS[0]]})
    forwarded, acknowledged = (
        spark.createDataFrame(tables[name]) for name in ("forwarded", "acknowledged")
    )
    found = transmissions(forwarded, acknowledged)
    assert found.columns == [*forwarded.columns, *OUTCOMES]
    rows = {row.recorded_at: (row.outcome, row.round_trip_s) for row in found.collect()}
    assert found.count() == len(rows) == 6
    assert rows == {
        1.0: ("acknowledged", 0.1),
        2.0: ("unacknowledged", None),
        3.0: ("acknowledged", None),  # of which attempt is not known
        4.0: ("unacknowledged", None),
        5.0: ("unacknowledged", None),
        6.0: ("unacknowledged", None),
    }
