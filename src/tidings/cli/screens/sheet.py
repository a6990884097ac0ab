"""How is a table shown on a screen of any width? No number is ever cut.

Where a table is too wide, its texts are folded first, after a separator if they have one. Where
the numbers alone are too wide, every row becomes a list: a line for each column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

COPIED_WHOLE = 24  # a word of a text up to this long is not broken, so that it can be copied
LEAST_HEADING = 12  # characters left to the headings of a list
GAP = 1  # between heading and value in a list


class Sheet:
    """A table of texts and numbers that fits the screen it is printed on."""

    def __init__(self, title: str = "", caption: str = "") -> None:
        self.title, self.caption = title, caption
        self._headings: list[str] = []
        self._folds: list[bool] = []
        self._rows: list[tuple[tuple[str, ...], str]] = []

    def add_texts(self, *headings: str) -> None:
        """Columns of texts, which may be folded."""
        self._add(headings, folds=True)

    def add_numbers(self, *headings: str) -> None:
        """Columns of numbers, and of whatever else must stay in one piece."""
        self._add(headings, folds=False)

    def _add(self, headings: Sequence[str], folds: bool) -> None:
        self._headings += headings
        self._folds += [folds] * len(headings)

    def add_row(self, *cells: str, style: str = "") -> None:
        self._rows.append((cells, style))

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        natural = [max(map(_width, cells)) for cells in self._columns()]
        for padding in (1, 0):
            taken = sum(natural) + len(natural) * (padding + 1)  # a line of space after each
            widths = self._folded_widths(natural, taken - options.max_width)
            if widths is not None:
                yield self._table(widths, padding)
                return
        yield from self._list(options.max_width)

    def _columns(self) -> list[list[str]]:
        return [
            [heading, *(cells[i] for cells, _ in self._rows)]
            for i, heading in enumerate(self._headings)
        ]

    def _folded_widths(self, natural: list[int], excess: int) -> list[int] | None:
        """Widths of columns that are so much less together, the widest text first; None if the
        texts cannot give as much."""
        widths, columns = list(natural), self._columns()
        least = [
            min(max(map(_widest_word, cells)), COPIED_WHOLE) if folds else width
            for cells, folds, width in zip(columns, self._folds, natural, strict=True)
        ]
        for _ in range(excess):
            spare = [i for i, width in enumerate(widths) if width > least[i]]
            if not spare:
                return None
            widths[max(spare, key=lambda i: widths[i])] -= 1
        return widths

    def _table(self, widths: list[int], padding: int) -> Table:
        table = Table(
            title=Text(self.title, "table.title") if self.title else None,
            caption=Text(self.caption, "table.caption") if self.caption else None,
            title_justify="left",
            box=SIMPLE,
            show_edge=False,
            padding=(0, padding, 0, 0),
        )
        for heading, folds, width in zip(self._headings, self._folds, widths, strict=True):
            table.add_column(
                Text(heading),
                justify="left" if folds else "right",
                overflow="fold",  # of letters that are wider than others
                no_wrap=not folds,
                width=width,
            )
        for cells, style in self._rows:
            texts = [Text(folded(c, w)) for c, w in zip(cells, widths, strict=True)]
            table.add_row(*texts, style=style or None)
        return table

    def _list(self, width: int) -> RenderResult:
        headings = [heading.replace("\n", " ") for heading in self._headings]
        whole = [_width(c) for row, _ in self._rows for c, f in self._pairs(row) if not f]
        room = max(LEAST_HEADING, width - GAP - max(whole, default=width // 2))
        left = min(max(map(len, headings), default=0), room)
        if self.title:
            yield Text(self.title, "table.title")
        for cells, style in self._rows:
            grid = Table.grid(padding=(0, GAP, 0, 0))
            for heading, cell in zip(headings, cells, strict=True):
                value = folded(cell, max(1, width - left - GAP))
                grid.add_row(Text(folded(heading, left)), Text(value, no_wrap=True))
            yield Padding(grid, (0, 0, 1, 0), style=style or "none", expand=False)
        if self.caption:
            yield Text(self.caption, "table.caption")

    def _pairs(self, cells: tuple[str, ...]) -> list[tuple[str, bool]]:
        return list(zip(cells, self._folds, strict=True))


def folded(text: str, width: int) -> str:
    """The text in lines of this width: broken after spaces and separators, where it has some."""
    lines = [""]
    for word in _words(text):
        if lines[-1] and len(lines[-1] + word.rstrip()) > width:
            lines.append("")
        while len(word.rstrip()) > width:
            lines[-1], word = word[:width], word[width:]
            lines.append("")
        lines[-1] += word.rstrip("\n")
        if word.endswith("\n"):
            lines.append("")
    return "\n".join(line.rstrip() for line in lines)


def _words(text: str) -> list[str]:
    """A text in pieces that end where a reader takes a breath; a number, as 1e-05, is one piece."""
    return re.split(r"(?<=[\s/;])|(?<=:)(?!\d)|(?<=\w-)(?<!\d[eE]-)", text)


def _widest_word(text: str) -> int:
    return max(cell_len(word.rstrip()) for word in _words(text))


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))
