"""The APIs of AWS but SQS: signed requests, secrets, objects, resources of a template, and TLS."""
