"""Copies of finished videos in a real bucket: another make of S3 server, which checks signatures, between the gateway and its files."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import boto3
import pytest
from moto.server import ThreadedMotoServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLLGATE = os.environ.get("TOLLGATE_BIN", str(pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/tollgate"))
MODEL = """
[model."kling-v3"]
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
video = { variant = "c-standard", sold = { mode = ["std"] }, one_price = ["sound"] }
price = { video_second = 83_400 }
route = [{ provider = "kling", upstream_model = "kling-v3" }]
"""


def asked(method, url, key=None, body=None, headers=()):
    """Status, headers and body."""
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode())
    if body is not None:
        request.add_header("Content-Type", "application/json")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    for name, value in headers:
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


@pytest.fixture(scope="module")
def bucket():
    """A bucket, and the keys of somebody who may use it. From then on every request has to be signed."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"

    def client(service, **keys):
        keys = keys or dict(aws_access_key_id="first", aws_secret_access_key="first")
        return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", **keys)

    client("s3").create_bucket(Bucket="videos")
    iam = client("iam")
    iam.create_user(UserName="tollgate")
    allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    iam.put_user_policy(UserName="tollgate", PolicyName="all", PolicyDocument=json.dumps(allowed))
    made = iam.create_access_key(UserName="tollgate")["AccessKey"]
    keys = dict(aws_access_key_id=made["AccessKeyId"], aws_secret_access_key=made["SecretAccessKey"])
    assert asked("POST", endpoint + "/moto-api/reset-auth", body=0)[0] == 200
    s3 = client("s3", **keys)
    with pytest.raises(Exception, match="SignatureDoesNotMatch|InvalidAccessKeyId"):
        client("s3", **{**keys, "aws_secret_access_key": "another"}).list_objects_v2(Bucket="videos")
    yield endpoint, keys, s3
    server.stop()


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    command = [TOLLGATE, "sim", "--listen", "127.0.0.1:0", "--json"]
    log = open(tmp_path_factory.mktemp("sim") / "log", "wb")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    yield json.loads(process.stdout.readline())["sim_url"].removesuffix("/v1")
    process.kill()
    process.wait()
    process.stdout.close()
    log.close()


class Gateway:
    """The executable over a folder of its own, that can be stopped and started again with other settings."""

    def __init__(self, folder, sim, endpoint, keys):
        self.folder, self.process = folder, None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "catalog").mkdir()
        (folder / "catalog/models.toml").write_text(MODEL)
        for name, text in [
            ("access.key", "sim-access"),
            ("secret.key", "sim-secret"),
            ("s3-access.key", keys["aws_access_key_id"]),
            ("s3-secret.key", keys["aws_secret_access_key"]),
        ]:
            (folder / name).write_text(text)
        self.config = f"""
listen = "127.0.0.1:{self.port}"
database = "sqlite"
[tasks]
look_every = "50ms"
refresh_after = "10ms"
patience = "5s"
[provider.kling]
kind = "kling"
base_url = "{sim}/video/kling"
access_file = "access.key"
secret_file = "secret.key"
poll_every = "100ms"
[video.s3]
endpoint = "{endpoint}"
access_file = "s3-access.key"
secret_file = "s3-secret.key"
[video]
copy_to = "s3://videos/made"
"""

    def open(self):
        """Starts it, with an account that has money and a key."""
        self.start()
        account = self.cli("account", "create", "test")["account_id"]
        self.cli("account", "topup", account, "100")
        self.key = self.cli("key", "create", account)["secret"]

    def start(self, more=""):
        (self.folder / "tollgate.toml").write_text(self.config + more)
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen([TOLLGATE, "serve", "--config", str(self.folder / "tollgate.toml")], stderr=log)
        log.close()
        end = time.monotonic() + 60
        while True:
            try:
                if asked("GET", self.url + "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            assert self.process.poll() is None and time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=40) == 0

    def cli(self, *arguments):
        command = [TOLLGATE, "--config", str(self.folder / "tollgate.toml"), "--json", *arguments]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True).stdout)

    def made(self, marker=""):
        """A finished task."""
        body = {"model": "kling-v3", "prompt": f"[[sim:ok queue=0 run=0 {marker}]]"}
        status, _, task = asked("POST", self.url + "/v1/videos", self.key, body)
        assert status == 200, task
        end = time.monotonic() + 60
        while True:
            task = json.loads(asked("GET", f"{self.url}/v1/videos/{json.loads(task)['id']}", self.key)[2])
            if task["status"] in ("completed", "failed"):
                assert task["status"] == "completed", task
                return task
            assert time.monotonic() < end, task
            time.sleep(0.05)
            task = json.dumps(task)


@pytest.fixture
def gateway(tmp_path, sim, bucket):
    endpoint, keys, s3 = bucket
    gateway = Gateway(tmp_path, sim, endpoint, keys)
    try:
        gateway.open()
        yield gateway
        if gateway.process.poll() is None:
            gateway.stop()
    finally:
        # Also where the start or a command failed: nothing is left running.
        if gateway.process is not None and gateway.process.poll() is None:
            gateway.process.kill()
            gateway.process.wait()
    report = gateway.cli("ledger", "verify", "--strict")
    assert report["breaches"] == [], report
    for one in listed(s3):
        s3.delete_object(Bucket="videos", Key=one)


def listed(s3):
    return [one["Key"] for one in s3.list_objects_v2(Bucket="videos").get("Contents", [])]


def whole(s3, task):
    return s3.get_object(Bucket="videos", Key=f"made/{task['id']}.mp4")["Body"].read()


@pytest.mark.parametrize("kilobytes", [0, 12 * 1024], ids=["one request", "an upload in parts"])
def test_a_copy_is_there_before_the_task_is_completed_and_served_in_ranges(gateway, bucket, kilobytes):
    _, _, s3 = bucket
    task = gateway.made(f"kb={kilobytes}")
    assert listed(s3) == [f"made/{task['id']}.mp4"]
    copy = whole(s3, task)
    assert copy[4:8] == b"ftyp" and len(copy) > kilobytes * 1024
    if kilobytes:
        filler = copy[-kilobytes * 1024 :]
        assert all(filler[at : at + 4] == (at // 4).to_bytes(4, "big") for at in range(0, len(filler), 4)), "every part in its place"
        parts = s3.head_object(Bucket="videos", Key=f"made/{task['id']}.mp4")["ETag"].strip('"').rsplit("-", 1)
        assert len(parts) == 2 and int(parts[1]) >= 3, parts
    link = task["metadata"]["url"]
    assert link.startswith(gateway.url + "/v1/videos/") and "Expires=" in link
    status, headers, body = asked("GET", link)
    assert (status, headers["Content-Type"], body) == (200, "video/mp4", copy)
    for wanted, status, part in [
        ("bytes=4-7", 206, copy[4:8]),
        ("bytes=-4", 206, copy[-4:]),
        (f"bytes={len(copy) - 9}-", 206, copy[-9:]),
        (f"bytes={len(copy)}-", 416, b""),
    ]:
        got, headers, body = asked("GET", link, headers=[("Range", wanted)])
        assert got == status, wanted
        if status == 206:
            assert body == part and headers["Content-Range"].endswith(f"/{len(copy)}"), wanted


def test_a_copy_is_deleted_with_its_task(gateway, bucket):
    _, _, s3 = bucket
    first, second = gateway.made(), gateway.made()
    assert len(listed(s3)) == 2
    assert asked("DELETE", f"{gateway.url}/v1/videos/{first['id']}", gateway.key)[0] == 200
    assert listed(s3) == [f"made/{second['id']}.mp4"]


def test_copies_are_taken_away_after_their_time_and_nothing_else_is(gateway, bucket):
    _, _, s3 = bucket
    s3.put_object(Bucket="videos", Key="other/foreign.mp4", Body=b"not ours")
    # A new ledger knows no time that is certain, and erases nothing before it does.
    gateway.cli("clock", "accept")
    task = gateway.made()
    gateway.stop()
    gateway.start('keep = "1d"\n')
    time.sleep(1)
    assert len(listed(s3)) == 2, "its time has not come"
    gateway.stop()
    # The server writes times in whole seconds.
    time.sleep(2)
    gateway.start('keep = "1s"\n')
    end = time.monotonic() + 60
    while listed(s3) != ["other/foreign.mp4"] and time.monotonic() < end:
        time.sleep(0.1)
    assert listed(s3) == ["other/foreign.mp4"]
    status, _, body = asked("GET", f"{gateway.url}/v1/videos/{task['id']}/content", gateway.key)
    assert (status, body[4:8]) == (200, b"ftyp"), "the provider still has it"


def test_a_bucket_that_refuses_does_not_lose_the_video(gateway, bucket):
    _, _, s3 = bucket
    gateway.stop()
    (gateway.folder / "s3-secret.key").write_text("another")
    gateway.start()
    task = gateway.made()
    assert listed(s3) == []
    assert asked("GET", task["metadata"]["url"])[2][4:8] == b"ftyp", "passed on from the provider"
    assert "another" not in (gateway.folder / "log").read_text()
