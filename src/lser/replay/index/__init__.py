"""The bucket index behind LSER: which slots lie under which code, each code's in order of reward.

What it does is said in plain Python by `reference`. Here is how it lies in memory. An entry is one
word, `order key << 32 | slot`; the order key is the float32 reward as an integer of the same order.
`r1` below stands for the key of reward 1, so `r1|5` is the entry of slot 5 with reward 1.

    header (`layout.HEADER`): one record of counts, rules and addresses; kernels take only this
      |
      |-- ids      by slot: what each slot holds, number of the write * capacity + slot, or -1
      |
      |-- table    code << 32 | bucket, open addressing    [ . . 9->1 . . . 5->0 . . ]
      |                                                            |       |
      |-- buckets  records (`layout.BUCKET`)               0: code 5, start 0, count 4, blocks 0
      |                                                    1: code 9, start 4, count 2, blocks 0
      |                                                            |
      |-- arena    one array of words, cut into runs       |r1|5 r1|1 r0|3 r0|0|r2|2 r0|4  .  . |
      |            of 4, 8, 16, 32 or 64 entries           0                    4               8
      |
      |-- free_runs       the first free run of each size; a free run's first word names the next
      |-- listed_codes    the occupied codes side by side, for the search for the nearest
      `-- keys, homes, ranking    only for rules that seek an entry by its slot, or evict

A bucket of up to 64 entries is one run. A larger one is a directory: a run of pairs, (key of the
block's first entry, where the block begins << 8 | how many it holds), over blocks of up to 64 that
each are a run. After rewards 0 to 64 came to one bucket in turn:

    bucket 0: start 0, count 65, blocks 2
    directory at 0:     | r64, 124<<8|1 | r63, 60<<8|64 |
    block at 124:       | r64|64 |
    block at 60:        | r63|63 r62|62 ... r0|0 |

**A push.** Capacity 6, all slots in use as drawn; a transition of code 5 and reward 0 arrives.
`placing.place` finds bucket 0 in the table. The memory is full, so the bucket's worst entry, its
last, is looked at: r0|0, the oldest of the lowest reward. As 0 >= 0 it goes (`sorted.delete_worst`)
and slot 0 is taken. A binary search finds the place of the newcomer's key, before all equal ones,
as newer is better (`sorted.insert`): the run becomes r1|5 r1|1 r0|0 r0|3. It is the write number 6,
so ids[0] = 6 * 6 + 0 = 36. A reward of -1 would have been dropped, and so would any reward with a
code that has no bucket (`unseen="drop"`).

**A draw.** Three for a query of code 5, reward-driven: bucket 0, the first three entries as they
lie, slots 5, 1 and 0 (`drawing.pick`, `sorted.best`). Six: slots 5, 1, 0, 3, and then 5 and 1 again
(`drawing.fill`). Four for code 13 = 0b1101, which has no bucket: `drawing.nearest_two` goes through
the listed codes; 5 = 0b0101 and 9 = 0b1001 share two bits of three with it and differ in one, so
the larger bucket comes first, and the draw is 5 and 1 from bucket 0, then 2 and 4 from bucket 1.

Modules, from the bottom: `layout` (records, the table), `blocks` (runs, directories), `sorted` (a
bucket in order), `placing` (the rule of the store), `drawing` (the rule of the draw), `dump` (write
out, read in, check), `hashing` (projections and their signs), `encoders` (observation to code),
`controls` (codes that know nothing), `calls` (what Python calls), `index` (makes room, which
kernels cannot), `reference`.
"""
