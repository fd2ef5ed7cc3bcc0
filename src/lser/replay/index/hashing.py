"""Projections of observations on planes, and the codes of their signs.

Sums in a fixed order in float64, not a matrix product: a BLAS product rounds differently for one
row and for many, which flips a bit now and then and loses the bucket of a known observation. Here
the code of an observation is the same alone, in any block and on any machine.
"""

import numpy as np

from lser.compiled import Num, UInt32, inner, kernel
from lser.types import Float32, Float64

TOGETHER = 5  # planes that are projected on at a time


@inner
def project(
    row: Float32, shift: Float64, scale: Float64, planes: Float64, features: Float64, sums: Float64
) -> None:
    """The projections of an observation on all planes (K, O), each a sum in the order of features.

    Five at a time, because a processor adds several numbers in the time of one; K is a multiple of
    it. `features` (O,) is room to work in.
    """
    for d in range(len(shift)):
        features[d] = (np.float64(row[d]) - shift[d]) * scale[d]
    for k in range(0, len(sums), TOGETHER):
        first = second = third = fourth = fifth = 0.0
        for d in range(len(shift)):
            first += features[d] * planes[k, d]
            second += features[d] * planes[k + 1, d]
            third += features[d] * planes[k + 2, d]
            fourth += features[d] * planes[k + 3, d]
            fifth += features[d] * planes[k + 4, d]
        sums[k], sums[k + 1], sums[k + 2] = first, second, third
        sums[k + 3], sums[k + 4] = fourth, fifth


@inner
def sign_code(
    row: Float32, shift: Float64, scale: Float64, planes: Float64, features: Float64, sums: Float64
) -> Num:
    """The code of an observation; bit k: whether the projection on plane k is positive."""
    project(row, shift, scale, planes, features, sums)
    code = np.int64(0)
    for k in range(len(sums)):
        code |= np.int64(sums[k] > 0) << k
    return code


@kernel
def sign_codes(
    rows: Float32, shift: Float64, scale: Float64, planes: Float64, codes: UInt32
) -> None:
    """The codes of all rows, (N,)."""
    features, sums = np.empty(len(shift)), np.empty(len(planes))
    for i in range(len(rows)):
        codes[i] = sign_code(rows[i], shift, scale, planes, features, sums)


@kernel
def project_all(
    rows: Float32, shift: Float64, scale: Float64, planes: Float64, sums: Float64
) -> None:
    """All projections of all rows, (N, K)."""
    features = np.empty(len(shift))
    for i in range(len(rows)):
        project(rows[i], shift, scale, planes, features, sums[i])
