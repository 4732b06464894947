"""The page itself: head, sections, tables, and numbers as a reader sees them."""
