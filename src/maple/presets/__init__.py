"""Settings that go together, named by `--preset`."""
