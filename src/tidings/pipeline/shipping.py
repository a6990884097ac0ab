"""What must travel to a cluster's executors? The package, and the files that scenarios name.

The machines of a cluster share the folder of results with the driver, and nothing else.

The package that runs here is sent as an archive, with what was compiled of it if that runs here.
Spark unpacks it, as a library inside a zip file cannot be loaded, in the folder where Python looks
first; so it comes before any that a machine has installed, and all run the same code. A machine for
which it was not compiled interprets it.

Files that a scenario names (maps, tables of delays) are sent once per sweep, whatever the number of
points, and are named by their content. Executors fetch both from here when they start, so the
copies stay while this process runs.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec
from pyspark import SparkContext, SparkFiles

import tidings
from tidings.native_code import PLACE, compiled_files
from tidings.scenarios.overlay import GENERATORS
from tidings.sim.scenario import Scenario

SHIPPED = "shipped:"  # before the name of a file that travels; executors know where it is
SOURCE = {".py", ".typed", ".properties"}


def ship_package(context: SparkContext) -> None:
    """Give executors this very package: a folder of its name, among the files that they get."""
    context.addArchive(f"{package_archive()}#{tidings.__name__}")


@cache
def package_archive() -> Path:
    """What is in the folder of the package that runs here."""
    package, archive = Path(tidings.__file__).parent, _travelling() / "tidings.zip"
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        for path in sorted(package.rglob("*")):
            if path.suffix in SOURCE:
                file.write(path, path.relative_to(package))
        for name, path in compiled_files().items():
            file.write(path, f"{PLACE}/{name}")
    return archive


class FilesToShip:
    """The files that scenarios name: copied when those are packed, handed over when Spark runs."""

    def __init__(self) -> None:
        self._copies: dict[Path, Path] = {}

    def packed(self, scenario: Scenario) -> Scenario:
        """The scenario as it travels; what it names is copied now, so it may change afterwards."""
        return _renamed(scenario, lambda name: self._pack(Path(scenario.folder) / name))

    def hand_over(self, context: SparkContext) -> None:
        """Executors fetch the files before their next task."""
        for copy in sorted(set(self._copies.values())):
            context.addFile(str(copy))

    def _pack(self, file: Path) -> str:
        if file not in self._copies:
            self._copies[file] = _copy(file)
        return SHIPPED + self._copies[file].name


def unpacked(scenario: Scenario) -> Scenario:
    """On an executor: the scenario with its files where Spark has put them."""
    return _renamed(scenario, _arrived)


def _arrived(name: str) -> str:
    return SparkFiles.get(name.removeprefix(SHIPPED)) if name.startswith(SHIPPED) else name


def _renamed(scenario: Scenario, new_name: Callable[[str], str]) -> Scenario:
    """The scenario with other names for the files that it reads when it runs. A folder of traces
    to replay stays where it is: it may be large, and is shared as the results are."""
    topology, links = scenario.topology, scenario.links
    kind = GENERATORS[str(topology.get("kind", "full-mesh"))]
    if path := topology.get("path", getattr(kind(), "path", "")):
        topology = topology | {"path": new_name(str(path))}
    if links.model:
        links = msgspec.structs.replace(links, model=new_name(links.model))
    return msgspec.structs.replace(scenario, topology=topology, links=links)


def _copy(path: Path) -> Path:
    content = path.read_bytes()
    name = blake2b(content, digest_size=8).hexdigest()
    copy = _travelling() / f"{name}{path.suffix}"
    copy.write_bytes(content)
    return copy


@cache
def _travelling() -> Path:
    """Where the copies wait for executors that may start at any time."""
    folder = tempfile.mkdtemp(prefix="tidings-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
