"""A real Kafka for a campaign: one broker in KRaft mode, from Maven, run with a JDK of 17 or newer."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from deadline import DEADLINE_S
from own_sockets import free_ports

VERSION: Final = "4.1.0"

_POM: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>kafka-for-a-campaign</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""
_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners={protocol}://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={protocol}://127.0.0.1:{broker}
listener.security.protocol.map={protocol}:{protocol},CONTROLLER:PLAINTEXT
inter.broker.listener.name={protocol}
log.dirs={logs}
num.partitions={partitions}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.min.session.timeout.ms=1000
group.initial.rebalance.delay.ms=0
"""
_SASL_SSL: Final = """\
ssl.keystore.type=PEM
ssl.keystore.location={chain}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
ssl.endpoint.identification.algorithm=
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="{user}" password="{password}" user_{user}="{password}";
"""


class Secured(NamedTuple):
    """What clients of a broker must show and trust."""

    user: str
    password: str
    certificate: Path
    """The path of the broker's certificate and of its key, without .crt and .key."""
    authority: Path


class NoKafka(Exception):  # noqa: N818 - what is missing, and no error of ours
    """Kafka cannot be run here; the message says what is missing."""


def fetched(directory: Path) -> Path:
    """Return where the jars are, and have Maven fetch them first where they are not there yet.

    Raises:
        NoKafka: there is no Java or no Maven, or Maven cannot fetch them.
    """
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        message = f"a real Kafka needs a JDK of 17 or newer and Maven; not found: {', '.join(missing)}"
        raise NoKafka(message)
    jars = directory / f"kafka-{VERSION}"
    if not any(jars.glob("kafka_2.13-*.jar")):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "pom.xml").write_text(_POM)
        command = ["mvn", "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            message = f"Maven could not fetch Kafka {VERSION}: {(done.stdout or done.stderr)[-500:]}"
            raise NoKafka(message)
    return jars


@contextmanager
def real_kafka(jars: Path, directory: Path, partitions: int, secured: Secured | None = None) -> Iterator[str]:
    """Run a broker that makes topics as they are asked for, and give its address; with TLS and SASL where secured."""
    ports = dict(zip(("broker", "controller"), free_ports(2), strict=True))
    properties = directory / "server.properties"
    protocol = "PLAINTEXT" if secured is None else "SASL_SSL"
    text = _PROPERTIES.format(**ports, protocol=protocol, logs=directory / "logs", partitions=partitions)
    properties.write_text(text + ("" if secured is None else _security(secured, directory)))
    java = ["java", "-Xmx512m", "-cp", f"{jars}/*"]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    subprocess.run(formatting, check=True, capture_output=True, timeout=DEADLINE_S)
    with (directory / "kafka.log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            _wait(process, ports["broker"], directory / "kafka.log")
            yield f"127.0.0.1:{ports['broker']}"
        finally:
            process.kill()
            process.wait(DEADLINE_S)


def _security(secured: Secured, directory: Path) -> str:
    chain = directory / "broker.pem"
    certificate = secured.certificate
    chain.write_text(certificate.with_suffix(".key").read_text() + certificate.with_suffix(".crt").read_text())
    return _SASL_SSL.format(chain=chain, authority=secured.authority, user=secured.user, password=secured.password)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
