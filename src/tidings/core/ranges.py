"""What a number may be: types that a document, or a frame, is checked against when it is read.

NaN passes none of them.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Finite = Annotated[float, Meta(ge=0, le=1e9)]  # not negative either; infinity would do harm
Ratio = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(gt=0, le=1)]  # of what is new in a mean: all of it, or a part
Count = Annotated[int, Meta(ge=1)]
MOST_WHOLE = 2**63 - 1  # fits into a column of the trace
Whole = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]
