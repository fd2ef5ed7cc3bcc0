"""dm-reverb for benchmarks/shards.py: a table of single steps, told what to do line by line.

Runs in an environment of its own, which has no lser: ``push N`` inserts N items and answers items
per second, ``sample N`` reads N batches ahead through a TrajectoryDataset and answers batches per
second.
"""

import itertools
import sys
import time

import numpy as np
import reverb
import tensorflow as tf

wide, acted, capacity, size = map(int, sys.argv[1:5])
rng = np.random.default_rng(0)
width = 2 * wide + acted + 3
signature = tf.TensorSpec((1, width), tf.float32)  # packed rows, as ours: a tensor each is slower
server = reverb.Server(
    [
        reverb.Table(
            "steps",
            reverb.selectors.Uniform(),
            reverb.selectors.Fifo(),
            capacity,
            reverb.rate_limiters.MinSize(1),
            signature=signature,
        )
    ]
)
address = f"localhost:{server.port}"
steps = list(rng.standard_normal((4096, width)).astype(np.float32))
endless = itertools.cycle(steps)


def push(count: int) -> float:
    begin = time.perf_counter()
    with reverb.Client(address).trajectory_writer(num_keep_alive_refs=1) as writer:
        for step in itertools.islice(endless, count):
            writer.append(step)
            writer.create_item("steps", 1.0, writer.history[-1:])
            writer.flush(block_until_num_items=1024)
    return count / (time.perf_counter() - begin)


def batches():
    dataset = reverb.TrajectoryDataset.from_table_signature(
        address, "steps", max_in_flight_samples_per_worker=2 * size
    )
    yield from dataset.batch(size).prefetch(16)  # the fastest of what was tried


push(4096)
reader = batches()
next(reader)
print("ready", flush=True)
for line in sys.stdin:
    what, count = line.split()
    if what == "push":
        print(push(int(count)), flush=True)
    else:
        begin = time.perf_counter()
        for _ in range(int(count)):
            next(reader)
        print(int(count) / (time.perf_counter() - begin), flush=True)
