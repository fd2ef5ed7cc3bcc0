"""One file per memory, each with its `Params`; the catalogue names them."""
