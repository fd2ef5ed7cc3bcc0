"""`lser policy` against a service, and against things that are none."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lser.cli import main

POLICIES = {
    "lser": {
        "held": True,
        "versions": [
            {"version": 12, "state": "live", "pages": 4_000, "updates": 90, "problems": []},
            {"version": 13, "state": "refused", "pages": 1, "updates": 2, "problems": ["NaN", "x"]},
        ],
    },
    "bandit": {
        "held": False,
        "versions": [{"version": 1, "state": "live", "pages": 5, "updates": 6, "problems": []}],
    },
}


@contextmanager
def service(status=200, body=b"{}"):
    """A server that answers everything alike; yields its address and what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            asked.append((self.command, self.path, self.headers.get("Authorization")))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_the_list_has_a_line_for_every_version(capsys):
    with service(body=json.dumps(POLICIES).encode()) as (url, asked):
        assert main(["policy", "--url", url + "/"]) == 0
    assert asked == [("GET", "/policies", None)]
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["policy", "state", "pages", "updates", "notes"]
    assert [line.split() for line in lines] == [
        ["lser", "12", "live", "4,000", "90", "held"],
        ["lser", "13", "refused", "1", "2", "NaN;", "x"],
        ["bandit", "1", "live", "5", "6"],
    ]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("promote lser 12", "/policies/lser/12/promote"),
        ("rollback lser 12", "/policies/lser/12/rollback"),
        ("rollback lser", "/policies/lser/0/rollback"),  # the control's policy
        ("promote a/b? 1", "/policies/a%2Fb%3F/1/promote"),
    ],
)
def test_promoting_and_going_back_are_posts(words, path, capsys):
    with service() as (url, asked):
        assert main(["policy", *words.split(), "--url", url]) == 0
    assert asked == [("POST", path, None)]
    action, *rest = words.split()
    assert capsys.readouterr().out.startswith(f"{action}: {rest[0]}")


def test_the_token_comes_from_the_file_or_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("LSER_ADMIN_TOKEN", "of the environment")
    (tmp_path / "token").write_text("of the file\n")
    with service() as (url, asked):
        assert main(["policy", "rollback", "lser", "--url", url]) == 0
        given = ["--token-file", str(tmp_path / "token")]
        assert main(["policy", "rollback", "lser", "--url", url, *given]) == 0
    assert [header for *_, header in asked] == ["Bearer of the environment", "Bearer of the file"]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (409, b'{"error": "lser has no version 9"}', "lser has no version 9"),
        (502, b"<html>Bad Gateway</html>", "HTTP Error 502: Bad Gateway"),
        (404, b"", "HTTP Error 404: Not Found"),
        (500, b"[]", "HTTP Error 500"),
        (200, b"<html>a page</html>", "is no service of lser: its answer is no JSON object"),
        (200, b"[1]", "is no service of lser"),
    ],
)
def test_a_refusal_is_told_in_the_service_s_words_or_by_its_status(status, body, message, capsys):
    with service(status, body) as (url, _):
        assert main(["policy", "promote", "lser", "9", "--url", url]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_port_that_does_not_speak_http_is_said(capsys):
    def answer():
        connection, _ = listening.accept()
        connection.recv(4_096)
        connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        port = listening.getsockname()[1]
        assert main(["policy", "list", "--url", f"http://127.0.0.1:{port}"]) == 2
        thread.join()
    assert "does not speak HTTP" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["promote", "promote lser", "promote lser -1", "rollback"])
def test_an_arm_and_a_version_are_needed(words, capsys):
    assert main(["policy", *words.split(), "--url", "http://127.0.0.1:9"]) == 2
    assert "needs an arm and a version" in capsys.readouterr().err


def test_a_token_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["policy", "--token-file", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
