"""Our memories inside other libraries: one module per library, each imported only on demand."""
