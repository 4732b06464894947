"""The HTML page of a report: its template, its tables, and the format of its numbers."""
