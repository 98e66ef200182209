"""A tiny language model trained in seconds on a CPU, for paired experiments over many seeds."""
