"""Lost replies: every outgoing call of every use case, faulted in every mode.

``transport`` records and faults calls at the sockets, ``aws`` stands in for SQS, S3 and Secrets
Manager, ``harness`` invokes functions and brings the system to quiet, ``use_cases`` lists what is
played, ``play`` plays it and checks the end, ``expected`` lists known failures.
"""
