"""Which code runs, or has run, and how does one have the other? In one line."""

from __future__ import annotations

from collections.abc import Mapping

from tidings import CODE
from tidings.native_code import COMPILED, SWITCH


def code_here() -> str:
    """Of this process, and of those that it starts."""
    other = f" (to interpret it: {SWITCH}=0)" if CODE == COMPILED else ""
    return f"Code: {CODE}{other}."


def simulated_by(ran_by: Mapping[str, int], here: str = CODE) -> str:
    """By which code points were simulated, given how many by which; nothing if that is not known.

    Executors of a cluster have what was sent to them, so if it runs interpreted here, the reason is
    to be found here.
    """
    compiled = ran_by.get(COMPILED, 0)
    sources = {code: count for code, count in ran_by.items() if code != COMPILED}
    if not sources:
        return "Simulated by compiled code." if compiled else ""
    reasons = sources if here == COMPILED else [here]
    why = "; ".join(sorted(code.removeprefix("interpreted ").strip("()") for code in reasons))
    source = f"by the source as it stands ({why})"
    if not compiled:
        return f"Simulated {source}."
    return f"Simulated by compiled code: {compiled} points; {source}: {sum(sources.values())}."
