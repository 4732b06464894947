"""The owner's part of a site: the account, approvals, the high-water mark, keys in memory."""
