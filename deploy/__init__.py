"""An environment in AWS: its templates besides template.yaml, and what deploys and checks it."""
