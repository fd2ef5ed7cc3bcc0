"""One file per memory; the catalogue names them.

The settings of all stand in `params`, which imports nothing heavy. Parts that serve one memory lie
beside it: `codes` (LSER), `zones` (DER), `attention` and `sketch` (AER), `places` (SER), `links`
(HER).
"""
