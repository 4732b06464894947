"""The owner's part of a site: account, approvals, keys in memory, newest round that may have been sent."""
