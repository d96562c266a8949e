"""Send push messages to the services of browsers, outside of the VPC."""

from plaza.notifications.push.send_requests import PUSH_REQUESTS, send

handler = PUSH_REQUESTS.processor(send).lambda_handler()
