"""What does a study argue? A TOML file in `studies/`: a sweep, what its figure shows, and claims.

The sweep (`scenario`, `[grid]`, `[setting.NAME]`, `[quick]`) is read as any other, see
`pipeline.sweep.grid`, and `tidings sweep` runs it too.

The argument
------------
    [study]
    title = "Full mesh, links that fail"
    paper = "DCRD"
    figure = "Figure 2"
    section = "IV.D.1"
    x = "links.failure_probability"   # a parameter of the grid; or see `about`
    metrics = ["delivery_ratio", "on_time_ratio"]
    lines = "broker.strategy"         # the parameter with a line for each value, if another
    only = { delivery_ratio = { "broker.transmissions" = 1 } } # a metric of a part of the grid

    [[claim]]                         # see `claims`
    ...
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tidings.core.document import convert
from tidings.core.errors import ConfigError, one_of
from tidings.files.packaged import packaged_folder
from tidings.files.toml import read_toml
from tidings.pipeline.analyse.question import Question
from tidings.pipeline.sweep.grid import Spec, read_spec
from tidings.pipeline.sweep.measure import MEAN
from tidings.studies.about import SUBSCRIBER, About
from tidings.studies.axes import Axis, axis_of
from tidings.studies.check import check_claims, check_figure
from tidings.studies.claims import Claim
from tidings.studies.wording import X

FOLDER = "studies"


class Study(Struct, frozen=True):
    """A sweep and what is argued with it."""

    name: str
    about: About
    spec: Spec
    claims: tuple[Claim, ...]
    axis: Axis
    quick: bool = False

    def settings(self) -> tuple[str, ...]:
        """The first is the one that claims are about, if they do not say; "" if there is none."""
        return tuple(self.spec.settings) or ("",)

    def strategies(self, setting: str) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(map(str, self.spec.grid_of(setting)[self.about.lines]))

    def xs(self, setting: str) -> tuple[X, ...]:
        """Every x that the figure has in a setting."""
        return self.axis.xs[setting]

    def places(self, setting: str) -> tuple[X, ...]:
        """Every x, and what else a number can be looked up at."""
        return (*self.xs(setting), MEAN) if self.about.x == SUBSCRIBER else self.xs(setting)

    def question(self) -> Question:
        """What it asks of each run."""
        about, labels = self.about, self.axis.labels
        ids = [id for id, label in labels.items() if label == about.subscriber]
        return Question(
            about.metrics, about.over(), about.places(), about.stretch_s(), next(iter(ids), None)
        )


class _Argument(Struct, frozen=True):
    """Of a file, what the sweep leaves to its study."""

    study: About
    claim: tuple[Claim, ...] = ()


def read_study(path: Path, quick: bool = False) -> Study:
    """The study in a file; what is wrong with it is one clear `ConfigError`."""
    spec = read_spec(path)
    argument = convert(read_toml(path), _Argument, str(path))
    about, first = argument.study, next(iter(spec.settings), "")
    check_figure(about, spec)
    claims = tuple(
        replace(claim, section=claim.section or about.section, setting=claim.setting or first)
        for claim in argument.claim
    )
    study = Study(spec.name, about, spec, claims, axis_of(about, spec))
    check_claims(study)  # of the whole: a quick run may lack points, and then does not judge
    if not quick:
        return study
    short = spec.quickened()
    return replace(study, spec=short, axis=axis_of(about, short), quick=True)


def find_study(name: str) -> Path:
    """The file of a study, by its name or its path."""
    if name.endswith(".toml"):
        return Path(name)
    known = study_files()
    if name not in known:
        folder = next(iter(known.values())).parent
        accepted = one_of(known, name, f"the path of a TOML file, or (in {folder}) one of")
        raise ConfigError("study", "name", name, accepted)
    return known[name]


def study_files() -> dict[str, Path]:
    """All studies by name: of the folder `studies` here, or else those that come with Tidings."""
    for folder in _folders():
        if found := {path.stem: path for path in sorted(folder.glob("*.toml")) if _argues(path)}:
            return found
    looked = " and ".join(str(folder.absolute()) for folder in _folders())
    accepted = f"a folder with studies (looked in {looked}), or the path of a TOML file"
    raise ConfigError("study", "folder", FOLDER, accepted)


def _folders() -> tuple[Path, ...]:
    return Path(FOLDER), packaged_folder("studies")


def _argues(path: Path) -> bool:
    """Is there more in the file than a sweep?"""
    return "study" in read_toml(path)
