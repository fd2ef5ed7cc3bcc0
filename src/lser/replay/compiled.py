"""The names of `lser.compiled`, from where memories import them until they say so themselves."""

from lser.compiled import (
    Num,
    UInt32,
    UInt64,
    cgutils,
    float32_at,
    float64_at,
    int32_at,
    int64_at,
    kernel,
    popcount,
    prefetch,
    refuse_others,
    slide,
    uint32_at,
    unordered_kernel,
)

__all__ = [
    "Num",
    "UInt32",
    "UInt64",
    "cgutils",
    "float32_at",
    "float64_at",
    "int32_at",
    "int64_at",
    "kernel",
    "popcount",
    "prefetch",
    "refuse_others",
    "slide",
    "uint32_at",
    "unordered_kernel",
]
