"""What a broker holds in memory: not what only readers of its traces need."""

from pathlib import Path

from support.broker_programs import WITHIN_S, a_line_of
from support.live import eventually

from tidings.traces.files import parquet_files


def test_a_broker_that_has_written_its_trace_has_not_loaded_arrow(tmp_path: Path) -> None:
    programs = a_line_of(tmp_path, "n1", "n2")
    for program in programs.values():
        program.start()
    changed = tmp_path / "traces" / "link_changed"
    eventually(lambda: len(list(parquet_files(changed))) >= 2, WITHIN_S)  # one of each
    for program in programs.values():
        loaded = program.loaded()
        assert "msgspec" in loaded
        assert not [name for name in ("pyarrow", "libarrow", "pandas", "pyspark") if name in loaded]
    for program in programs.values():
        program.end()
