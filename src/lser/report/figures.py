"""A figure: drawn once, kept as SVG and PNG whose bytes depend on the data alone."""

import html
import io
import re
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

    def html(self, *, files: bool) -> str:
        """The figure in HTML with its SVG inlined; ``files`` adds links to the saved copies."""
        links = (
            f' <span class="files"><a href="figures/{self.name}.svg">SVG</a> '
            f'<a href="figures/{self.name}.png">PNG</a></span>'
            if files
            else ""
        )
        command = f"<code>{html.escape(self.command)}</code>" if self.command else ""
        return (
            f'<figure id="{self.name}">\n{_inline(self)}\n'
            f"<figcaption><p>{html.escape(self.sentence)}</p>"
            f'<p class="made">{command}{links}</p></figcaption></figure>\n'
        )


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
    with style.context(["default", {**_SETTINGS, "svg.hashsalt": name}]):
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


def _inline(figure: Figure) -> str:
    """The SVG as a labelled image inside a page: ids made unique, ink the page's own colour."""
    svg = figure.svg[figure.svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style).*?</\1>\s*", "", svg, flags=re.DOTALL)  # style: the page's
    svg = re.sub(r'\bid="', f'id="{figure.name}-', svg)
    svg = re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{figure.name}-", svg)
    svg = svg.replace(INK, "currentColor")
    head, rest = svg.split(">", 1)
    head = re.sub(r' (?:width|height)="[\d.]+pt"', "", head)
    label = html.escape(figure.alt, quote=True)
    return f'{head} role="img" aria-label="{label}">{rest.rstrip()}'
