"""Pages, slots and leases: pure accounting."""
