"""The SQS and the Secrets Manager of moto on a socket, for clients that do not use botocore."""

from __future__ import annotations

from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.botocore_stubber import BotocoreStubber

from tests.support.http_servers import Quiet, serving

URL = "https://{}.us-east-1.amazonaws.com/"


class _Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet

    def do_POST(self) -> None:
        """Answer one action."""
        target = self.headers["X-Amz-Target"].partition(".")[0]
        url = URL.format({"AmazonSQS": "sqs"}.get(target, target))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers_in = HTTPHeaders.from_dict(dict(self.headers))
        request = AWSPreparedRequest("POST", url, headers_in, body, stream_output=False)
        response = BotocoreStubber().process_request(request)
        assert response is not None, f"moto has no {target}"
        status, headers, text = response
        reply = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "date", "server", "connection"):
                self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


def serving_aws() -> AbstractContextManager[str]:
    """Serve both until the end of the block; yield their URL. Needs ``mock_aws``."""
    return serving(_Handler)
