"""Draws hyperplanes.svg, bucket.svg and fallback.svg beside this file, with the library itself."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, Wedge

from lser.replay import ConstantCode, LocalityReplay, SimHash
from lser.types import Float32, Int64

mpl.use("Agg")
mpl.rcParams |= {"svg.hashsalt": "lser", "font.size": 11}

INK, PALE, STRONG = "#1b1f24", "#e4e8ec", "#d55e00"
SECTORS = ("#0072b2", "#009e73", "#c88a00", "#cc79a7", "#8465cf", "#d55e00")
REWARDS = ("#dfe5ea", "#9ecae1", "#4292c6", "#08519c")


def bits_of(code: int, bits: int) -> str:
    """The code as a string, the first hyperplane's bit first."""
    return "".join(str(code >> k & 1) for k in range(bits))


def draw_hyperplanes(axes: Axes) -> None:
    """Three lines cut the plane into six sectors; every sector is a bucket."""
    encoder = SimHash(2, bits=3, seed=57)
    normals = encoder.hyperplanes
    turns = np.sort(np.concatenate([np.arctan2(-normals[:, 0], normals[:, 1])] * 2) % (2 * np.pi))
    turns[1::2] = (turns[::2] + np.pi) % (2 * np.pi)
    edges = np.sort(turns)
    points = np.random.default_rng(3).normal(size=(260, 2)).astype(np.float32)
    points = points[(np.hypot(*points.T) > 0.25) & (np.hypot(*points.T) < 2.55)]
    codes = encoder.encode(points)
    for i, start in enumerate(edges):
        end = edges[i + 1] if i + 1 < len(edges) else edges[0] + 2 * np.pi
        middle = (start + end) / 2
        towards = np.array([[np.cos(middle), np.sin(middle)]], np.float32)
        code = int(encoder.encode(towards)[0])
        axes.add_patch(Wedge((0, 0), 2.6, *np.degrees((start, end)), color=SECTORS[i], alpha=0.1))
        inside = points[codes == code]
        axes.scatter(inside[:, 0], inside[:, 1], s=16, color=SECTORS[i], lw=0)
        x, y = 2.95 * towards[0]
        name = bits_of(code, 3)
        axes.text(x, y, name, ha="center", va="center", color=SECTORS[i], weight="bold", size=13)
    for k, normal in enumerate(normals):
        along = np.array([-normal[1], normal[0]]) / np.hypot(*normal)
        axes.plot(*np.outer(along, (-2.6, 2.6)), color=INK, lw=1.4)
        foot = 1.75 * along
        tip = foot + 0.42 * normal / np.hypot(*normal)
        axes.annotate("", tip, foot, arrowprops={"arrowstyle": "->", "color": INK})
        x, y = foot + 0.62 * (tip - foot) / 0.42
        axes.text(x, y, f"{k + 1}", ha="center", va="center")
    axes.set(xlim=(-3.3, 3.3), ylim=(-3.2, 3.2), aspect="equal")
    axes.axis("off")


def contents(replay: LocalityReplay, query: Float32) -> tuple[Int64, Float32]:
    """Ids and rewards of the one bucket, lowest first."""
    batch = replay.sample(len(replay), query=query)
    return batch.ids[::-1], batch.reward[::-1]


def draw_bucket(axes: Axes) -> None:
    """A bucket of six places after each of twelve arrivals."""
    rewards = (0, 1, 0, 2, 0, 1, 1, 0, 2, 3, 1, 0)
    replay = LocalityReplay(6, 1, 1, greedy=1.0, encoder=ConstantCode())
    one = np.ones((1, 1), np.float32)
    for column, reward in enumerate(rewards):
        no = np.zeros(1, np.bool_)
        arrived = replay.extend(one, one, np.array([reward], np.float32), one, no, no)[0]
        ids, held = contents(replay, one[0])
        for row, (identity, value) in enumerate(zip(ids, held, strict=True)):
            fresh = identity == arrived
            box = Rectangle((column + 0.06, row + 0.06), 0.88, 0.88, fc=REWARDS[int(value)])
            box.set(ec=STRONG if fresh else "white", lw=2.6 if fresh else 0.5, zorder=1 + fresh)
            axes.add_patch(box)
            colour = "white" if value > 1 else INK
            number = axes.text(column + 0.5, row + 0.5, f"{value:g}", color=colour, zorder=3)
            number.set(ha="center", va="center")
        note = f"{reward}" if arrived >= 0 else f"{reward}\ndropped"
        axes.text(column + 0.5, -0.2, note, ha="center", va="top", color=STRONG)
    edge = len(rewards)
    bracket = edge + np.array([0.15, 0.3, 0.3, 0.15])
    axes.plot(bracket, [3.05, 3.05, 5.95, 5.95], color=INK)
    axes.text(edge + 0.45, 4.5, "a greedy\nbatch of 3", va="center")
    axes.plot([6, 6], [-0.1, 6.3], color=INK, ls=":", lw=1.2)
    axes.text(5.9, 6.5, "below capacity: append", ha="right")
    axes.text(6.1, 6.5, "full: replace the lowest")
    axes.text(-0.15, -0.2, "reward", ha="right", va="top", color=STRONG)
    axes.set(xlim=(-1.1, edge + 2.2), ylim=(-1.3, 7.1), aspect="equal")
    axes.axis("off")


def fallback_memory() -> tuple[LocalityReplay, Float32]:
    """A memory with seven occupied codes, and a query whose code is none of them."""
    rng = np.random.default_rng(28)
    replay = LocalityReplay(1_000, 8, 1, bits=8, greedy=1.0, seed=2)
    users = rng.normal(size=(8, 8))
    query, others = users[0], users[0] + 0.9 * users[1:]
    rows = others.repeat(rng.integers(6, 30, 7), axis=0).astype(np.float32)
    count = len(rows)
    reward = rng.integers(0, 2, count).astype(np.float32)
    no = np.zeros(count, np.bool_)
    replay.extend(rows, np.zeros((count, 1), np.float32), reward, rows, no, no)
    return replay, query.astype(np.float32)


def jaccard(a: int, b: int) -> float:
    """Of two codes as sets of their ones."""
    union = (a | b).bit_count()
    return (a & b).bit_count() / union if union else 1.0


def draw_code(axes: Axes, code: int, query: int, y: float) -> None:
    """One code as eight squares; ones that the query has too are strong."""
    for k in range(8):
        mine, shared = code >> k & 1, code & query & 1 << k
        fill = STRONG if shared else ("#8a949e" if mine else "white")
        axes.add_patch(Rectangle((k * 0.55, y - 0.22), 0.47, 0.44, fc=fill, ec="#8a949e", lw=0.8))


def draw_fallback(axes: Axes) -> None:
    """The occupied codes from most to least Jaccard-similar, and where a batch came from."""
    replay, query = fallback_memory()
    encoder = replay.encoder
    assert isinstance(encoder, SimHash)
    code = int(encoder.encode(query[None])[0])
    codes, sizes = np.unique(
        encoder.encode_rows(replay.state().arrays["rows"].astype(np.float32)), return_counts=True
    )
    assert code not in codes
    rank = sorted(
        zip(codes.tolist(), sizes.tolist(), strict=True),
        key=lambda c: (-jaccard(c[0], code), (c[0] ^ code).bit_count(), -c[1], c[0]),
    )
    drawn = encoder.encode(replay.sample(8, query=query).observation).tolist()
    assert {c: drawn.count(c) for c in set(drawn)} == {rank[0][0]: 4, rank[1][0]: 4}
    draw_code(axes, code, code, 0)
    axes.text(-0.3, 0, "query", ha="right", va="center", weight="bold")
    axes.text(4.8, 0, "no bucket", va="center")
    for row, (other, size) in enumerate(rank):
        y = -1.15 - 0.62 * row
        draw_code(axes, other, code, y)
        similarity = jaccard(other, code)
        colour = STRONG if row < 2 else "#b9c1c9"
        axes.add_patch(Rectangle((4.8, y - 0.2), 2.2 * similarity, 0.4, fc=colour))
        axes.text(4.9 + 2.2 * similarity, y, f"{similarity:.2f}", va="center")
        axes.text(-0.3, y, f"bucket of {size}", ha="right", va="center")
        if row < 2:
            axes.text(7.3, y, "half of the batch", va="center", color=STRONG, weight="bold")
    axes.text(4.8, -0.68, "Jaccard similarity", va="center")
    axes.text(0, -0.68, "occupied codes", va="center")
    axes.set(xlim=(-2.3, 9.6), ylim=(-5.3, 0.5), aspect="equal")
    axes.axis("off")


def main() -> None:
    """Draw all three."""
    drawings = {
        "hyperplanes": (draw_hyperplanes, (5.2, 5.0)),
        "bucket": (draw_bucket, (8.6, 4.6)),
        "fallback": (draw_fallback, (8.2, 4.0)),
    }
    for name, (draw, size) in drawings.items():
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        path = Path(__file__).with_name(f"{name}.svg")
        figure.savefig(path, metadata={"Date": None})
        text = path.read_text()
        path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


if __name__ == "__main__":
    main()
