"""What is said when Java is gone in the middle of the work."""

import subprocess
import sys
from pathlib import Path

from support.traces import a_publication, tables_of, write_tables

PROGRAM = """
import sys
from pathlib import Path

from tidings.core.errors import TidingsError
from tidings.pipeline.analyse.job import analyse
from tidings.pipeline.session import spark_session
from tidings.traces.intake import take_in

folder = Path(sys.argv[1])
intake = take_in(folder)
spark = spark_session("local[1]", "test", brief=True)
spark.sparkContext._gateway.proc.kill()
try:
    analyse(spark, folder, intake=intake)
except TidingsError as error:
    print(error)
"""


def test_java_that_ends_is_told_from_a_fault_of_the_folder(tmp_path: Path) -> None:
    write_tables(tmp_path, tables_of({"r": [a_publication(1, 0.0, ("b2/c:t",))]}))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith(f"Spark could not analyse {tmp_path}: Java has ended"), done
    assert "--conf spark.driver.memory" in done.stdout
