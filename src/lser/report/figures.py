"""A figure: drawn once, kept as SVG and PNG whose bytes depend on the data alone."""

import html
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lser.report.style import INK

Draw = Callable[[Any], None]  # takes a matplotlib figure

_SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "axes.facecolor": "none",
    "text.parse_math": False,  # a record's "$" is a dollar
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "grid.color"), INK),
}


@dataclass(frozen=True)
class Figure:
    """A drawing with its text alternative, what it shows and the command behind it."""

    name: str
    alt: str
    sentence: str
    command: str
    svg: str
    png: bytes

    @property
    def inline(self) -> str:
        """The SVG as a labelled image inside a page: ids made unique, ink the page's own colour."""
        svg = self.svg[self.svg.index("<svg") :]
        svg = re.sub(r"<(metadata|style).*?</\1>\s*", "", svg, flags=re.DOTALL)  # style: the page's
        svg = re.sub(r'\bid="', f'id="{self.name}-', svg)
        svg = re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{self.name}-", svg)
        svg = svg.replace(INK, "currentColor")
        head, rest = svg.split(">", 1)
        head = re.sub(r' (?:width|height)="[\d.]+pt"', "", head)
        label = html.escape(self.alt, quote=True)
        return f'{head} role="img" aria-label="{label}">{rest.rstrip()}'


def render(
    name: str,
    draw: Draw,
    *,
    alt: str,
    sentence: str,
    command: str = "",
    size: tuple[float, float] = (4.8, 3.5),
) -> Figure:
    """Draws a figure; ``size`` in inches is also its width on a phone, so text stays readable."""
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    # "default" first: a reader's own matplotlibrc changes nothing. The salt makes the ids inside
    # the SVG a function of the name instead of chance.
    with (
        style.context(["default", {**_SETTINGS, "svg.hashsalt": name}]),
        warnings.catch_warnings(),
    ):
        # A record may be named in any script; what the font lacks becomes a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        warnings.filterwarnings("ignore", "Matplotlib currently does not support")
        canvas = Canvas(figsize=size, layout="constrained")
        FigureCanvasAgg(canvas)
        draw(canvas)
        svg, png = io.StringIO(), io.BytesIO()
        canvas.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
        canvas.savefig(png, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    return Figure(name, alt, sentence, command, _tidy(svg.getvalue()), png.getvalue())


def _tidy(svg: str) -> str:
    """Coordinates to hundredths of a point, which halves the page; text is left as it is."""
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag.group()), svg)
