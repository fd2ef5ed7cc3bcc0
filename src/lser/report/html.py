"""The page: one HTML file that needs nothing else, in light and dark, on desk and phone."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from lser.report.figures import Figure
from lser.report.tables import Table

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1f24; --soft: #57606a;
  --line: #d0d7de; --panel: #f6f8fa; --link: #0550ae; --warn: #9a3c00; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --ink: #e6e9ec; --soft: #a2abb5;
  --line: #3a4149; --panel: #1c2126; --link: #7fb6ff; --warn: #ffb077; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
header, main, footer { max-width: 76rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.5rem 0 .5rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p, ul { max-width: 70ch; margin: .5rem 0; } li { margin: .3rem 0; }
p, li, caption, td, th, code { overflow-wrap: break-word; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -999rem; background: var(--ground); padding: .5rem 1rem; }
.skip:focus { left: 1rem; top: 1rem; z-index: 1; }
nav ul { list-style: none; padding: 0; max-width: none; display: flex; flex-wrap: wrap;
  gap: .25rem 1.1rem; }
nav li { margin: 0; } nav a { display: inline-block; padding: .2rem 0; }
.summary { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem;
  padding: .25rem 1rem .75rem; margin-top: 1rem; }
.summary h2 { border: 0; margin: .5rem 0 0; padding: 0; }
.summary h3 { margin: 0; padding-top: .5rem; } .summary ul { padding-left: 1.2rem; }
.groups { columns: 2 27rem; column-gap: 2.5rem; }
.groups > div { break-inside: avoid; }
.warn { color: var(--warn); }
.soft, .made, footer { color: var(--soft); font-size: .875rem; }
.figures { columns: 2 27rem; column-gap: 2rem; margin-top: 1rem; }
figure { margin: 0 0 1.5rem; max-width: 35rem; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; color: var(--ink); }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption p { margin: .35rem 0; }
code { font: .85em ui-monospace, "Liberation Mono", monospace; background: var(--panel);
  padding: .1em .35em; border-radius: .25rem; overflow-wrap: anywhere; }
.files { white-space: nowrap; } .files a { margin-right: .5rem; }
.scroll { overflow-x: auto; margin: 1rem 0 .25rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .5rem; max-width: 80ch; }
@media (max-width: 48rem) { caption { max-width: calc(100vw - 2rem); } }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: top; }
td.wrap { white-space: normal; min-width: 16rem; }
thead th { border-bottom-width: 2px; }
tbody th { font-weight: 600; position: sticky; left: 0; background: var(--ground); }
dt { font-weight: 600; margin-top: .5rem; } dd { margin: 0; overflow-wrap: anywhere; }
footer { padding: 2rem 1rem 3rem; }
@media print { nav, .skip, .files { display: none; } figure, table { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class Part:
    """A heading with what stands under it: findings, figures and tables."""

    title: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Section:
    """One study on the page."""

    name: str
    title: str
    question: str
    findings: Sequence[str]
    parts: Sequence[Part]


def page(
    *,
    title: str,
    lead: str,
    sections: Sequence[Section],
    short: Sequence[tuple[str, Sequence[str]]],
    notes: str,
    warning: str = "",
    files: bool = True,
) -> str:
    """The whole page; ``files`` adds links to the figures and tables saved beside it."""
    links = "".join(
        f'<li><a href="#{section.name}">{html.escape(section.title)}</a></li>'
        for section in sections
    )
    body = "".join(_section(section, files=files) for section in sections)
    alarm = f'<p class="warn"><strong>{html.escape(warning)}</strong></p>' if warning else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#content">Skip to the results</a>\n'
        f"<header><h1>{html.escape(title)}</h1>\n{lead}{alarm}"
        f'<nav aria-label="Studies"><ul>{links}<li><a href="#notes">How to read this</a></li>'
        "</ul></nav></header>\n"
        f'<main id="content" tabindex="-1">\n{summary(short)}{body}</main>\n'
        f'<footer id="notes"><h2>How to read this</h2>\n{notes}</footer>\n</body>\n</html>\n'
    )


def summary(groups: Sequence[tuple[str, Sequence[str]]]) -> str:
    """What the whole report says, first on the page."""
    lead = "".join(paragraphs(lines) for heading, lines in groups if not heading)
    inner = "".join(
        f"<div><h3>{html.escape(heading)}</h3>{bullets(lines)}</div>\n"
        for heading, lines in groups
        if heading
    )
    return (
        '<section class="summary" aria-labelledby="summary"><h2 id="summary">In short</h2>\n'
        f'{lead}<div class="groups">{inner}</div></section>\n'
    )


def bullets(lines: Sequence[str]) -> str:
    """Lines as a list."""
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def paragraphs(lines: Sequence[str], kind: str = "") -> str:
    """Lines as paragraphs, of a class where ``kind`` names one."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "".join(f"{opening}{html.escape(line)}</p>\n" for line in lines)


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    """Names with their values."""
    inner = "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in pairs)
    return f"<dl>{inner}</dl>\n"


def _section(section: Section, *, files: bool) -> str:
    parts = "".join(_part(part, files=files) for part in section.parts)
    return (
        f'<section aria-labelledby="{section.name}">'
        f'<h2 id="{section.name}">{html.escape(section.title)}</h2>\n'
        f"<p>{html.escape(section.question)}</p>\n"
        f"{bullets(section.findings) if section.findings else ''}{parts}</section>\n"
    )


def _part(part: Part, *, files: bool) -> str:
    drawn = "".join(figure.html(files=files) for figure in part.figures)
    tables = "".join(
        table.html()
        + (
            f'<p class="made files"><a href="tables/{table.name}.csv">CSV</a> '
            f'<a href="tables/{table.name}.md">Markdown</a></p>\n'
            if files
            else ""
        )
        for table in part.tables
    )
    heading = f"<h3>{html.escape(part.title)}</h3>\n" if part.title else ""
    return f'{heading}<div class="figures">\n{drawn}</div>\n{tables}'
