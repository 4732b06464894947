"""The methods that sites run (the ADMM methods of [ZKL18] and masked sums), and the loop that runs them."""
