"""Many runs side by side in one process, their learners stacked on one accelerator."""
