"""What is kept beside the record: caches, projections, outboxes, builds, filters, ids."""
