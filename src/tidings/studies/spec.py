"""What does a study argue? A TOML file in `studies/`: a sweep, what its figure shows, and claims.

The sweep (`scenario`, `[grid]`, `[setting.NAME]`, `[quick]`) is read as any other, see
`pipeline.jobs.grid`, and `tidings sweep` runs it too. The rest is the argument:

    [study]
    title = "Full mesh, links that fail"
    paper = "DCRD"
    figure = "Figure 2"
    section = "IV.D.1"
    x = "links.failure_probability"   # a parameter of the grid, or "lateness"
    metrics = ["delivery_ratio", "on_time_ratio"]
    lines = "broker.strategy"         # the parameter with a line for each value, if another
    only = { delivery_ratio = { "broker.transmissions" = 1 } } # a metric of a part of the grid

    [[claim]]                         # see `claims`
    ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from tidings.core.document import convert, read_toml
from tidings.core.errors import ConfigError
from tidings.pipeline.jobs.grid import Spec, read_spec
from tidings.pipeline.jobs.measure import LATENESS_RATIOS, STRATEGY
from tidings.studies.check import LATENESS, check
from tidings.studies.claims import Claim

FOLDER = "studies"


class About(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the figure shows."""

    title: str
    paper: str
    figure: str
    section: str
    x: str
    metrics: Annotated[tuple[str, ...], Meta(min_length=1)]
    scale: Literal["linear", "log"] = "linear"  # of x
    lines: str = STRATEGY  # of the grid: each value is what claims and results call a strategy
    only: dict[str, dict[str, Any]] = field(default_factory=dict)  # by metric: values of the grid


class Study(Struct, frozen=True):
    """A sweep and what is argued with it."""

    name: str
    about: About
    spec: Spec
    claims: tuple[Claim, ...]
    quick: bool = False

    def settings(self) -> tuple[str, ...]:
        """The first is the one that claims are about, if they do not say; "" if there is none."""
        return tuple(self.spec.settings) or ("",)

    def strategies(self, setting: str) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(map(str, self.spec.grid_of(setting)[self.about.lines]))

    def xs(self, setting: str) -> tuple[float, ...]:
        """Every x that the figure has in a setting."""
        if self.about.x == LATENESS:
            return LATENESS_RATIOS
        return tuple(map(float, self.spec.grid_of(setting)[self.about.x]))


class _Argument(Struct, frozen=True):
    """Of a file, what the sweep leaves to its study."""

    study: About
    claim: tuple[Claim, ...] = ()


def read_study(path: Path, quick: bool = False) -> Study:
    """The study in a file; what is wrong with it is one clear `ConfigError`."""
    spec = read_spec(path)
    argument = convert(read_toml(path), _Argument, str(path))
    about, first = argument.study, next(iter(spec.settings), "")
    claims = tuple(
        replace(claim, section=claim.section or about.section, setting=claim.setting or first)
        for claim in argument.claim
    )
    study = Study(spec.name, about, spec, claims)
    check(study)  # the whole of it: a quick run may lack points, and then does not judge
    return replace(study, spec=spec.quickened(), quick=True) if quick else study


def find_study(name: str) -> Path:
    """The file of a study, by its name or its path."""
    if name.endswith(".toml"):
        return Path(name)
    known = study_files()
    if name not in known:
        folder = next(iter(known.values())).parent
        accepted = f"one of {', '.join(known)} (in {folder}), or the path of a TOML file"
        raise ConfigError("study", "name", name, accepted)
    return known[name]


def study_files() -> dict[str, Path]:
    """All studies by name: of the folder `studies` here, or else of the project's."""
    for folder in _folders():
        if found := {path.stem: path for path in sorted(folder.glob("*.toml")) if _argues(path)}:
            return found
    looked = " and ".join(str(folder.absolute()) for folder in _folders())
    accepted = f"a folder with studies (looked in {looked}), or the path of a TOML file"
    raise ConfigError("study", "folder", FOLDER, accepted)


def _folders() -> tuple[Path, ...]:
    """The project's is beside `src`, if the package was not installed away from it."""
    return Path(FOLDER), Path(__file__).parents[3] / FOLDER


def _argues(path: Path) -> bool:
    """Is there more in the file than a sweep?"""
    return "study" in read_toml(path)
