"""Where faiss overtakes the scan: time per query and recall over catalogue sizes, on one core."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time

import faiss
import numpy as np

from lser.simulators.bazaar import Params
from lser.simulators.bazaar.world import World
from lser.simulators.item_index import ExactIndex, FaissIndex, ItemIndex
from lser.types import Float32

K = 10


def microseconds(index: ItemIndex, weights: Float32) -> float:
    index.search(weights[:2], K)
    start = time.process_time()
    index.search(weights, K)
    return (time.process_time() - start) / len(weights) * 1e6


def main() -> None:
    faiss.omp_set_num_threads(1)
    rng = np.random.default_rng(0)
    weights = rng.uniform(-1, 1, (1_024, 16)).astype(np.float32)
    print("| items | scan | faiss, 64 probes | recall of the top 10 |\n|---|---|---|---|")
    for items in (20_000, 50_000, 100_000, 200_000, 1_000_000):
        features = World(Params(items=items, features=16)).features
        scan, faiss_index = ExactIndex(features), FaissIndex(features)
        some = weights if items < 500_000 else weights[:128]
        pairs = zip(scan.search(some, K), faiss_index.search(some, K), strict=True)
        recall = np.mean([len(np.intersect1d(a, b)) / K for a, b in pairs])
        times = microseconds(scan, some), microseconds(faiss_index, weights)
        print(f"| {items:,} | {times[0]:,.0f} µs | {times[1]:,.0f} µs | {recall:.3f} |", flush=True)


if __name__ == "__main__":
    main()
