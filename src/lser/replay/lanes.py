"""Sums side by side in one vector register, each in a fixed order: fast and always the same.

Numba vectorises a dot product only where it may reorder the sum, and a reordered sum rounds
differently; here eight dot products advance together, so no sum is reordered.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils as untyped
from numba.core import types
from numba.extending import intrinsic

LANES = 8
cgutils: Any = untyped


def _project(
    _typing: Any, x: Any, start: Any, shift: Any, scale: Any, vectors: Any, column: Any, out: Any
) -> Any:
    def codegen(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = [
            target.make_array(kind)(target, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        x, start, shift, scale, vectors, column, out = data
        array = target.make_array(signature.args[4])(target, builder, arguments[4])
        length, width = cgutils.unpack_tuple(builder, array.shape)
        double = ir.DoubleType()
        lanes = ir.VectorType(double, LANES)
        total = cgutils.alloca_once(builder, lanes)
        builder.store(ir.Constant(lanes, [0.0] * LANES), total)
        with cgutils.for_range(builder, length) as loop:
            d = loop.index
            value = builder.fpext(builder.load(builder.gep(x, [builder.add(start, d)])), double)
            value = builder.fsub(value, builder.load(builder.gep(shift, [d])))
            value = builder.fmul(value, builder.load(builder.gep(scale, [d])))
            same = ir.Constant(lanes, ir.Undefined)
            for lane in range(LANES):
                same = builder.insert_element(same, value, ir.IntType(32)(lane))
            place = builder.gep(vectors, [builder.add(builder.mul(d, width), column)])
            row = builder.load(builder.bitcast(place, lanes.as_pointer()), align=8)
            builder.store(builder.fadd(builder.load(total), builder.fmul(same, row)), total)
        place = builder.bitcast(builder.gep(out, [column]), lanes.as_pointer())
        builder.store(builder.load(total), place, align=8)
        return target.get_dummy_value()

    return types.void(x, start, shift, scale, vectors, column, out), codegen


# project(x float32, start, shift, scale, vectors (O, K), column, out (K,)), the rest float64:
# out[k] = sum over d of (x.flat[start + d] - shift[d]) * scale[d] * vectors[d, k], in the order of
# d, for the LANES values of k from `column` on; K is a multiple of LANES
project: Any = intrinsic(_project)
