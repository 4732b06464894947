"""Run the job in a file on one machine: read the tables, train or answer questions, and write the results."""
