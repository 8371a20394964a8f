"""One op of a manifest against what its kernel should compute, on recorded and on made inputs."""
