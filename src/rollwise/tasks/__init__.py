"""Data sets, rewards and models to train on: `chains`, `datasets`, `rewards`, `models`."""
