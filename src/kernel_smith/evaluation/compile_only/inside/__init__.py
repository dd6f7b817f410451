"""What runs beside the candidate, in its sandbox.

These files are copied there and import nothing else of ours, because the sandbox hides the
evaluator's source. The candidate can tamper with them, so nothing that they report is believed
beyond what it may say about the candidate itself.
"""
