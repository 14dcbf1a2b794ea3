"""Many points of a study, computed by many workers, as one durable table."""
