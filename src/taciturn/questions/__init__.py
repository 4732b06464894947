"""Questions: what sites compute together besides training a model, such as a description or a survival curve.

A job file names the kind of a question and sets its keys. Each kind has a class with these keys, with the
sums that the sites compute, and with the answer that is estimated from the sums.
"""
