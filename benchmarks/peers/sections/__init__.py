"""What is measured: the work, privacy, faults, solving; and what ours does there."""
