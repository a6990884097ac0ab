"""A claim finds its numbers in a table of means, and says what it found."""

import pytest

from tidings.studies.claims import Claim, Finding, MeanKey, Other, judge

MEANS = {
    MeanKey("", "dcrd", "delivery_ratio", 0.0): 1.0,
    MeanKey("", "dcrd", "delivery_ratio", 0.1): 1.0,
    MeanKey("", "d-tree", "delivery_ratio", 0.0): 1.0,
    MeanKey("", "d-tree", "delivery_ratio", 0.1): 0.855,
    MeanKey("", "dcrd", "on_time_ratio", 0.1): 0.971,
    MeanKey("", "dcrd", "packets_per_subscriber", 0.1): 1.5,
    MeanKey("", "d-tree", "packets_per_subscriber", 0.1): 1.2,
    MeanKey("physical", "dcrd", "on_time_ratio", 0.1): 0.922,
}
EVERY = (0.0, 0.1)


def a_claim(**fields: object) -> Claim:
    usual = {"id": "c", "section": "IV", "text": "so it is", "paper": 1.0, "kind": "near"}
    return Claim(**(usual | {"metric": "delivery_ratio", "strategy": "dcrd"} | fields))


def found(**fields: object) -> Finding:
    return judge(a_claim(**fields), MEANS, EVERY)


def test_a_value_that_holds() -> None:
    finding = found(metric="on_time_ratio", x=0.1, paper=0.967, tolerance=0.01)
    assert (finding.verdict, finding.ours, finding.paper) == ("holds", 0.971, 0.967)
    assert finding.why == "97.10 % (dcrd at 0.1) is near 96.70 % (within 1.00 points)."


def test_a_value_that_does_not_is_told_with_its_reason() -> None:
    finding = found(
        metric="on_time_ratio", setting="physical", x=0.1, paper=0.967, tolerance=0.01,
        why="Acknowledgements travel.",
    )  # fmt: skip
    assert (finding.verdict, finding.ours) == ("does not hold", 0.922)
    assert finding.why == (
        "92.20 % (dcrd at 0.1) is not near 96.70 % (within 1.00 points). Acknowledgements travel."
    )


def test_a_difference_of_two_strategies() -> None:
    more = found(x=0.1, minus=Other(strategy="d-tree"), paper=0.15, tolerance=0.01)
    assert (more.verdict, more.ours) == ("holds", pytest.approx(0.145))
    assert "+14.50 points" in more.why
    assert found(x=0.1, minus=Other(strategy="d-tree"), paper=0.2).verdict == "does not hold"


def test_a_difference_of_two_x_two_metrics_or_two_settings() -> None:
    fall = found(strategy="d-tree", x=0.1, minus=Other(x=0.0))
    assert fall.ours == pytest.approx(-0.145)
    late = found(metric="on_time_ratio", x=0.1, minus=Other(metric="delivery_ratio"))
    assert late.ours == pytest.approx(-0.029)
    timer = found(metric="on_time_ratio", x=0.1, minus=Other(setting="physical"))
    assert timer.ours == pytest.approx(0.049)


def test_a_ratio_of_two_strategies() -> None:
    traffic = {"metric": "packets_per_subscriber", "x": 0.1, "over": Other(strategy="d-tree")}
    more = found(**traffic, paper=1.2, tolerance=0.06)
    assert (more.verdict, more.ours) == ("holds", pytest.approx(1.25))
    ours = "1.250 times (dcrd at 0.1; a ratio of sums over seeds)"
    assert more.why == f"{ours} is near 1.200 times (within 0.060 times)."
    assert more.mean_of_ratios is None, "seeds are not known"
    assert found(**traffic, paper=1.2, tolerance=0.04).verdict == "does not hold"


def test_words_of_the_paper_are_read_as_a_number() -> None:
    finding = found(paper="always 100 %", kind="at least", value=1.0)
    assert (finding.verdict, finding.paper, finding.ours) == ("holds", "always 100 %", 1.0)


def test_every_x_is_meant_where_none_is_named() -> None:
    finding = found(strategy=("dcrd", "d-tree"), kind="at least")
    assert (finding.verdict, finding.ours) == ("does not hold", 0.855)
    assert "d-tree at 0.1" in finding.why


def test_a_course_over_x() -> None:
    falls = found(strategy="d-tree", kind="falling", paper="drops")
    assert (falls.verdict, falls.ours) == ("holds", pytest.approx(-0.145))
    assert falls.why == "-14.50 points (d-tree, from 0 to 0.1) is falling at every step."
    assert found(strategy="dcrd", kind="falling", paper="drops").verdict == "does not hold"
    assert found(strategy="dcrd", kind="flat", paper="the same").verdict == "holds"


def test_a_course_with_a_peak() -> None:
    claim = a_claim(kind="peaking", paper="a peak", metric="earnings", strategy="fifo")
    earned = {MeanKey("", "fifo", "earnings", x): e for x, e in ((1.0, 900.0), (5.0, 1500.0))}
    rises = judge(claim, earned, (1.0, 5.0))
    assert rises.verdict == "does not hold"
    falls = judge(claim, earned | {MeanKey("", "fifo", "earnings", 9.0): 1200.0}, (1.0, 5.0, 9.0))
    assert (falls.verdict, falls.ours) == ("holds", -300.0)
    assert falls.why == "-300 (fifo, from its largest at 5 to 9) is a peak that it falls from."


def test_what_a_run_does_not_have_is_not_judged() -> None:
    finding = found(x=0.2)
    assert (finding.verdict, finding.ours) == ("not judged", None)
    assert finding.why == "This run has no delivery_ratio of dcrd at 0.2."
    other = found(x=0.1, minus=Other(strategy="oracle"), setting="")
    assert "of oracle" in other.why


def test_a_ratio_of_sums_is_told_apart_from_the_mean_of_ratios() -> None:
    eb, rl = (MeanKey("fit", policy, "earnings", 15.0) for policy in ("eb", "rl"))
    numbers = {eb: {1: 100.0, 2: 140.0}, rl: {1: 50.0, 2: 10.0}}
    claim = a_claim(
        metric="earnings", setting="fit", strategy="eb", x=15.0, over=Other(strategy="rl"),
        paper=10.0, tolerance=3.0,
    )  # fmt: skip
    finding = judge(claim, {eb: 120.0, rl: 30.0}, (15.0,), numbers)
    assert (finding.ours, finding.mean_of_ratios) == (4.0, 8.0)
    assert finding.verdict == "does not hold", "the ratio of sums decides"
    told = "4.000 times (eb at 15; a ratio of sums over seeds, the mean of their ratios is 8.000)"
    assert finding.why.startswith(told)


def test_a_ratio_that_one_seed_does_not_have_has_no_mean_of_ratios() -> None:
    eb, rl = (MeanKey("", policy, "earnings", 15.0) for policy in ("eb", "rl"))
    claim = a_claim(metric="earnings", strategy="eb", x=15.0, over=Other(strategy="rl"), paper=4.0)
    numbers = {eb: {1: 100.0, 2: 140.0}, rl: {1: 60.0, 2: 0.0}}
    assert judge(claim, {eb: 120.0, rl: 30.0}, (15.0,), numbers).mean_of_ratios is None
