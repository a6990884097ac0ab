"""What does it take to join an overlay, and how does that grow with its size?

Brokers join one after the other, four in a second; each knows one member, and looks for links as
`broker.linking = "random"` does. Time is processor time of the simulator, for all brokers together.
Ratios are to the overlay of 50 brokers in the same run. Frames are those of control, by which
brokers tell each other of links, members and wishes, in the minutes of joining; probes and
acknowledgements come on top. A report of a broker reaches every other one, so a join cannot cost
less than a frame per member, and the target is that: ratios of frames and bytes per join of at most
n / 50.

An overlay has settled when no link changes any more; that every broker knows all others and what
they wish is shown by a publication after that, which all of them get.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from _report import Line, line, run

SMALLEST, SIZES, QUICK_SIZES = 50, (100, 200, 500), (100,)
MOST_CPU_S = 3_000
JOINING = Path(__file__).parent / "_joining.py"

Found = dict[str, Any]


def measured(quick: bool) -> list[Line]:
    smallest = found_with(SMALLEST)
    lines = lines_of(smallest, smallest)
    for size in QUICK_SIZES if quick else SIZES:
        lines += lines_of(found_with(size), smallest)
    return lines


def found_with(brokers: int) -> Found:
    arguments = [str(brokers), "random", str(MOST_CPU_S)]
    program = [sys.executable, str(JOINING), *arguments]
    done = subprocess.run(program, stdout=subprocess.PIPE, check=True)
    found: Found = json.loads(done.stdout)
    return found


def lines_of(found: Found, smallest: Found) -> list[Line]:
    size = found["brokers"]
    per_member = size / SMALLEST
    got_all = found["delivered"] == found["wanted"]
    frames, size_bytes = found["carried"]["control"]
    resting_frames, resting_bytes = found["at_rest"]["control"]
    settled = line(
        f"{size} brokers: quiet after the last join",
        found["settled_after_s"],
        "s",
        smallest["settled_after_s"],
        found["delivered"] / found["wanted"],
        1.0,
        met=got_all,
        notes=[
            f"{found['links']:.0f} links, {found['ended_links']:.0f} were given up on the way; "
            f"{found['delivered']:,} of {found['wanted']:,} deliveries afterwards (the ratio); "
            f"{found['megabytes']:,.0f} MB for all brokers",
            f"at rest a broker sends {resting_frames / size / 60:.2f} frames and "
            f"{resting_bytes / size / 60:,.0f} bytes of control per second; a minute takes "
            f"{found['resting_cpu_s']:.1f} s of a processor for all",
        ],
    )
    smallest_frames, smallest_bytes = smallest["carried"]["control"]
    return [
        settled,
        per_join(
            f"{size} brokers: frames per join", frames / size, "frames", smallest_frames, per_member
        ),
        per_join(
            f"{size} brokers: bytes per join",
            size_bytes / size,
            "bytes",
            smallest_bytes,
            per_member,
        ),
        per_join(
            f"{size} brokers: processor time per join",
            1000 * found["joining_cpu_s"] / size,
            "ms",
            1000 * smallest["joining_cpu_s"],
            per_member,
        ),
    ]


def per_join(name: str, value: float, unit: str, smallest: float, target: float) -> Line:
    baseline = smallest / SMALLEST
    ratio = value / baseline
    return line(name, value, unit, baseline, ratio, target, met=ratio <= target)


if __name__ == "__main__":
    run("joins", __doc__, measured)
