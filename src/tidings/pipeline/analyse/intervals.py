"""How sure is a mean over seeds? Half-widths of 95 % confidence intervals, by Student's t.

Seeds are few, so the normal distribution would promise too much. One seed says nothing about
spread: its interval is NaN.
"""

from __future__ import annotations

import json

import pandas as pd
from scipy.special import stdtrit  # scipy.stats has it too, but takes a second to import

from tidings.pipeline.transforms import metrics

CONFIDENCE = 0.95


def interval_factor(samples: pd.Series) -> pd.Series:
    """What a sample deviation is multiplied with; NaN for a single sample."""
    count = samples.where(samples > 1).astype(float)
    return stdtrit(count - 1, (1 + CONFIDENCE) / 2) / count**0.5


def with_intervals(means: pd.DataFrame) -> pd.DataFrame:
    """Deviations over seeds become half-widths of confidence intervals (one seed has none), and
    the setting becomes a column per parameter that varies."""
    intervals = {
        f"{name}_interval": means[deviation] * interval_factor(means[count])
        for name, deviation, count in zip(
            metrics.FIGURES, metrics.DEVIATIONS, metrics.COUNTS, strict=True
        )
    }
    widened = means.drop(columns=[*metrics.DEVIATIONS, *metrics.COUNTS]).assign(**intervals)
    parameters = _parameters(means["setting"])
    study = pd.concat([widened[["study", "strategy"]], parameters, widened.iloc[:, 3:]], axis=1)
    return study.sort_values(list(study.columns[: study.columns.get_loc("seeds")])).reset_index(
        drop=True
    )


def with_paired_intervals(differences: pd.DataFrame) -> pd.DataFrame:
    """The same for `metrics.paired`: `difference_interval` is of the mean of paired differences."""
    widened = differences.assign(
        difference_interval=differences["difference_deviation"]
        * interval_factor(differences["pairs"])
    )
    parameters = _parameters(differences["setting"])
    kept = widened.drop(columns=["study", "setting", "difference_deviation"])
    table = pd.concat([widened[["study"]], parameters, kept], axis=1)
    order = ["study", *parameters.columns, "metric", "strategy", "other"]
    return table.sort_values(order, ignore_index=True)


def swept(study: pd.DataFrame) -> list[str]:
    """The parameters that a study varies, whose names have a dot, and the setting."""
    return [name for name in study.columns if "." in name or name == "setting"]


def _parameters(settings: pd.Series) -> pd.DataFrame:
    """A column for each parameter that has more than one value, of numbers where they are."""
    columns = pd.DataFrame([json.loads(setting) for setting in settings], index=settings.index)
    varied = columns.loc[:, columns.nunique(dropna=False) > 1]
    return varied.apply(lambda column: pd.to_numeric(column, errors="coerce").fillna(column))
