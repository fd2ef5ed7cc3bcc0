"""``lser theory``: what to expect of a hash."""

import math
from typing import Annotated, Literal

import tyro
from rich.table import Table

from lser.cli.display import stdout
from lser.cli.json_text import json_text


def theory(argv: list[str]) -> int:
    """Print expectations."""
    return int(tyro.cli(_theory, args=argv, prog="lser theory"))


def _theory(
    bits: int = 10,
    angle: float | None = None,
    distance: float | None = None,
    width: float = 4.0,
    norm: Literal[1, 2] = 2,
    tables: int = 1,
    stored: int = 1_000_000,
    dim: int = 91,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """What to expect of a code: collisions, recall, occupied codes.

    Give an angle for SimHash (the paper's codes) or a distance for E2LSH.

    examples: lser theory --bits 10 --angle 20
              lser theory --bits 4 --distance 1 --width 4

    Args:
        bits: Hyperplanes of SimHash, or functions of E2LSH.
        angle: Between two observations, in degrees; 30 if no distance is given either.
        distance: Between two observations, in the norm below.
        width: Of E2LSH's cells.
        norm: 1 (Cauchy) or 2 (Gauss), for E2LSH.
        tables: Independent tables; Algorithm 1 has one.
        stored: Transitions stored, for the number of occupied codes.
        dim: Numbers in an observation.
        json_output: Print JSON lines.
    """
    from lser.theory import expectations

    if angle is not None and distance is not None:
        raise ValueError(f"give an angle or a distance, not both (angle={angle}, {distance=})")
    if angle is not None and not 0 <= angle <= 180:
        raise ValueError(f"--angle must be between 0 and 180 degrees, got {angle:g}")
    if distance is None:
        radians = math.radians(30.0 if angle is None else angle)
        rows = expectations(bits, angle=radians, tables=tables, stored=stored, dim=dim)
    else:
        rows = expectations(
            bits,
            distance=distance,
            width=width,
            norm=norm,
            tables=tables,
            stored=stored,
            dim=dim,
        )
    if json_output:
        for row in rows:
            print(json_text(row._asdict()))
        return 0
    table = Table()
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_column("meaning")
    for row in rows:
        table.add_row(row.quantity, f"{row.value:,.6g}", row.meaning)
    stdout().print(table)
    return 0
