"""The paper's figures as TOML files, and the code that runs and draws them."""
