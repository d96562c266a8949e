"""Rebuild inboxes and lists of celebrities' posts that Redis lacks, from MySQL."""

from plaza.social.feed.rebuild import INBOXES, rebuild

handler = INBOXES.processor(rebuild).lambda_handler()
