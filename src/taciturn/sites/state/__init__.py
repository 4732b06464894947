"""What belongs to the owner of a table: the account, approvals, the high-water mark, keys in memory."""
