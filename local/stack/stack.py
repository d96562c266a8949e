"""The stack: all parts, started in order and ended reliably."""

import contextlib
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import psutil

from cli.paths import DIRECTORY, TEMPLATE, CommandError
from local.stack import aws, baseline, deployment, kept, packages, servers
from local.stack.deployment import Deployed
from local.stack.kept import Kept
from local.stack.ports import claim_port, free_port
from local.stack.processes import (
    Process,
    end_all,
    find_processes_in,
    stop_process,
    wait_until,
)
from local.stack.servers import Server

if TYPE_CHECKING:
    from local.stack.cluster import Cluster  # imports redis-py, which most commands do not use

LOCKS = ("lock", "end-lock")
STATE = (
    "base_url",
    "web_url",
    "redis_url",
    "redis_cluster",
    "mysql_url",
    "aws_endpoint_url",
    "lambda_url",
    "region",
    "queues",
)
"""Attributes that are saved in stack.json."""
REQUIRED_PROCESSES = frozenset({"ministack", "lambda"})
"""Processes that the stack cannot run without; a database may stop and come back."""
OWNER = "up"
"""The process that an attached stack ends with."""
ORPHANS_END_S = 15
"""Time that processes whose parent was killed get to end by themselves."""

Step = Callable[[str], contextlib.AbstractContextManager[Any]]
UrlMapper = Callable[[str, str], str]


class StackNotRunning(CommandError):
    """No stack runs in the directory, or only parts of one."""


@contextlib.contextmanager
def ignore_step(step: str) -> Iterator[None]:
    yield


@contextlib.contextmanager
def use_stack(stack: "Stack") -> Iterator[None]:
    """Let ``plaza`` in this process use a stack. Raises CommandError for errors of Plaza."""
    os.environ.update(stack.environment())  # plaza reads its settings once
    from plaza.infra.runtime.errors import PlazaError

    try:
        yield
    except PlazaError as error:
        raise CommandError(str(error)) from None


@contextlib.contextmanager
def explain_outage(stack: "Stack") -> Iterator[None]:
    """Raise CommandError for an error of the drivers: the part of the stack is down."""
    try:
        yield
    except Exception as error:
        driver = type(error).__module__.partition(".")[0]
        part = {"pymysql": "mysql", "redis": "redis"}.get(driver)
        if part is None:
            raise
        raise CommandError(
            f"{part} does not answer; `{stack.command('status')}` shows the parts,"
            f" `{stack.command(f'start {part}')}` starts it: {error}"
        ) from None


def keep_url(part: str, url: str) -> str:
    return url


class Stack:
    """One stack in one directory. Several may run at once, each in its own.

    After ``up`` or ``load``: ``base_url`` of the HTTP API, ``web_url`` of the web app,
    ``redis_url``, ``mysql_url`` (with credentials), ``aws_endpoint_url``, ``region``, ``queues``
    (name -> URL, see ``Deployed``), and the servers ``redis`` and ``mysql``, which can be stopped,
    started, paused and resumed (None when a URL in the environment replaces them). When
    ``redis_cluster``, ``redis`` is a ``Cluster``, and ``redis_url`` names all of its nodes.
    """

    def __init__(self, directory: Path = DIRECTORY, *, template: Path = TEMPLATE) -> None:
        self.directory = directory.resolve()
        self.template = template
        self.base_url = ""
        self.web_url = ""
        self.redis_url = ""
        self.redis_cluster = False
        self.mysql_url = ""
        self.aws_endpoint_url = ""
        self.lambda_url = ""
        self.region = aws.REGION
        self.queues: dict[str, str] = {}
        self.deployed = Deployed("", {}, {})
        self.redis: Server | Cluster | None = None
        self.mysql: Server | None = None
        self._kept: Kept | None = None  # of this run, if it keeps its data
        self._has_data = False  # of a run before

    @classmethod
    def load(cls, directory: Path = DIRECTORY, *, require_all: bool = True) -> Self:
        """Return the stack that runs in ``directory``. Raises StackNotRunning with the cause.

        Unless ``require_all``, its Redis and MySQL may be down.
        """
        stack = cls(directory)
        try:
            state = json.loads((stack.directory / "stack.json").read_text())
            deployed = json.loads((stack.directory / "deployed.json").read_text())
        except FileNotFoundError:
            raise StackNotRunning("no stack is running; start one with `make run`") from None
        except ValueError:
            raise StackNotRunning(
                f"{stack.directory} is incomplete; {stack.stop_command()} removes it"
            ) from None
        for name in STATE:
            setattr(stack, name, state[name])
        stack.deployed = Deployed(**deployed)
        stack._load_servers()
        ended = [process.name for process in stack.processes() if not process.is_running()]
        if (
            not REQUIRED_PROCESSES.isdisjoint(ended)
            or len(stack._own_processes()) < len(REQUIRED_PROCESSES)
            or (ended and require_all)
        ):
            raise StackNotRunning(stack._explain_broken(ended))
        return stack

    def _explain_broken(self, ended: Sequence[str]) -> str:
        if ended and REQUIRED_PROCESSES.isdisjoint(ended):
            starts = ", ".join(f"`{self.command(f'start {name}')}`" for name in ended)
            return f"{' and '.join(ended)} ended; {starts} starts it again"
        return (
            f"the stack is broken: {', '.join(ended) or 'every process'} ended; "
            f"{self.stop_command()} removes it, with its data"
        )

    def up(
        self,
        *,
        port: int = 0,
        attached: bool = True,
        for_tests: bool = False,
        keep: bool = False,
        redis_cluster: bool = False,
        step: Step = ignore_step,
        map_url: UrlMapper = keep_url,
        parameters: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        """Start all parts and deploy the template; the API listens on ``port``. All stores are
        empty unless ``keep``: then they have what the run before left, and a stop leaves it.

        ``attached``: the stack ends with this process, however it ends. ``for_tests``: a faster,
        less durable database. ``redis_cluster``: three masters with a replica each instead of one
        Redis. ``step`` is entered around each part of the work. ``map_url`` maps a part (``redis``,
        ``mysql``, ``sqs``) and its address to the address that functions use, such as a proxy's;
        the nodes of a cluster are not mapped. ``parameters`` of the template override the usual
        ones.

        Raises CommandError; on any error or interrupt all started parts are ended.
        """
        with self._lock_start():
            self._refuse_if_running()
            self._find_kept(keep=keep)
            port = claim_port(port) if port else self._choose_port("api")
            self._clear(keep=LOCKS)
            if attached:
                self._save_process(Process.of_this_one(OWNER))
            try:
                self.redis_cluster = redis_cluster
                self._start_redis(step, attached=attached)
                self._start_mysql(step, attached=attached, for_tests=for_tests)
                self._start_aws(step, attached=attached)
                self._deploy(
                    step, port=port, attached=attached, map_url=map_url, parameters=parameters
                )
            except BaseException:
                self.down()
                raise

    def down(self) -> bool:
        """End all processes of this directory's stack. Returns whether there were any."""
        with self._lock_stop():
            return self._end()

    def empty(self) -> bool:
        """Delete what runs of this directory left. Returns whether there was anything.

        Raises CommandError while a stack runs.
        """
        with self._lock_stop():
            self._refuse_if_running()
            was_there = (self.directory / kept.FILE).exists()
            (self.directory / kept.FILE).unlink(missing_ok=True)
            if (self.directory / "lock").exists():
                self._clear(keep=(*LOCKS, "logs"))
            return was_there

    def _end(self) -> bool:
        own, emulated = self._own_processes(), self._read_emulated()
        (self.directory / "stack.json").unlink(missing_ok=True)
        self._load_servers()
        running = [process for process in self.processes() if process.is_running()]
        for process in reversed(own):
            if process.name == "ministack" and process.is_running() and emulated:
                kept.save_emulated(self.directory, *emulated)
            stop_process(process, grace_s=1)
        for server in (self.redis, self.mysql):
            if server is not None:
                server.resume()
                server.stop()
        left = [
            process
            for folder in ("tmp", "build")  # working directories of programs and of functions
            for process in find_processes_in(self.directory / folder)
        ]
        end_all(left, grace_s=2)
        if (self.directory / "lock").exists():
            self._clear(keep=(*LOCKS, "logs"))
        return bool(running or left)

    def _read_emulated(self) -> tuple[str, dict[str, str], str] | None:
        """Return the emulator's URL, the queues and the archive's bucket; None if nothing is kept
        of them, or if the stack never ran."""
        if not (self.directory / kept.FILE).exists():
            return None
        try:
            state = json.loads((self.directory / "stack.json").read_text())
            deployed = json.loads((self.directory / "deployed.json").read_text())
        except (FileNotFoundError, ValueError):
            return None
        bucket = deployed["environment"]["PLAZA_ARCHIVE_BUCKET"]
        return state["aws_endpoint_url"], state["queues"], bucket

    def stop_command(self) -> str:
        return "`make down`" if self.directory == DIRECTORY else f"`{self.command('down')}`"

    def command(self, words: str) -> str:
        """Return the command ``python -m local`` with ``words`` for this stack."""
        where = "" if self.directory == DIRECTORY else f" --dir {self.directory}"
        return f"{os.path.relpath(sys.executable)} -m local{where} {words}"

    def processes(self) -> list[Process]:
        own = [server.processes for server in (self.redis, self.mysql) if server is not None]
        return [*self._own_processes(), *chain.from_iterable(own)]

    def environment(self) -> dict[str, str]:
        """Return the settings for ``plaza`` and boto3 to use this stack from this process."""
        return {
            **self.deployed.environment,
            **deployment.LOCAL_VARIABLES,
            "PLAZA_ENVIRONMENT": "local",
            "PLAZA_REDIS_URL": self.redis_url,
            "PLAZA_REDIS_CLUSTER": str(int(self.redis_cluster)),
            "PLAZA_MYSQL_URL": self.mysql_url,
            "AWS_ENDPOINT_URL": self.aws_endpoint_url,
            **aws.credentials(),
        }

    def invoke(self, logical_id: str, event: dict[str, Any]) -> Any:
        """Run one function (``SweepOutbox``) now. Returns its result; raises CommandError."""
        return deployment.invoke(self.deployed, self.lambda_url, logical_id, event)

    def connect(self, service: str) -> Any:
        return aws.connect(service, self.aws_endpoint_url)

    def find_workers(self, logical_id: str) -> list[psutil.Process]:
        workers = []
        for pid in self.read_workers().get(logical_id, []):
            with contextlib.suppress(psutil.NoSuchProcess):
                workers.append(psutil.Process(pid))
        return workers

    def read_workers(self) -> dict[str, list[int]]:
        """Return logical id -> pids of the functions that have workers. Raises CommandError."""
        pids: dict[str, list[int]] = deployment.call_service(self.lambda_url, "GET", "/workers")[1]
        return pids

    def _start_redis(self, step: Step, *, attached: bool) -> None:
        packages.check_servers()
        if self._use_external("Redis", "PLAZA_REDIS_URL", servers.answers_redis, step):
            return
        with step("Redis Cluster" if self.redis_cluster else "Redis"):
            if self.redis_cluster:
                from local.stack.cluster import prepare_cluster

                self.redis = prepare_cluster(self.directory / "redis")
            else:
                settings = kept.REDIS_SETTINGS if self._kept else ()
                self.redis = servers.prepare_redis(self.directory / "redis", settings=settings)
            self.redis.start(attached=attached)
        self.redis_url = self.redis.url

    def _start_mysql(self, step: Step, *, attached: bool, for_tests: bool) -> None:
        if self._use_external("MySQL", "PLAZA_MYSQL_URL", servers.answers_mysql, step):
            return
        with step("MariaDB"):
            self.mysql = servers.prepare_mysql(
                self.directory / "mysql", for_tests=for_tests, has_data=self._has_data
            )
            self.mysql.start(attached=attached)
        self.mysql_url = self.mysql.url

    def _use_external(
        self, part: str, variable: str, answers: Callable[[str], bool], step: Step
    ) -> bool:
        """Use the server that an environment variable names. Returns False without one."""
        url = os.environ.get(variable, "")
        if url:
            with step(f"{part} at {variable}"):
                if not answers(url):
                    raise CommandError(f"no {part} answers at {variable}, or it refuses the user")
            setattr(self, f"{part.lower()}_url", url)
        return bool(url)

    def _start_aws(self, step: Step, *, attached: bool) -> None:
        with step("MiniStack, the AWS emulator"):
            port = free_port()
            process = aws.start_ministack(self.directory, port=port, attached=attached)
            self._save_process(process)
        self.aws_endpoint_url = f"http://127.0.0.1:{port}"

    def _deploy(
        self,
        step: Step,
        *,
        port: int,
        attached: bool,
        map_url: UrlMapper,
        parameters: Mapping[str, str | None],
    ) -> None:
        with step("sam build"):
            built = deployment.build_template(self.template, self.directory)
        from local.stack import issuer, push_keys  # import cryptography, as few commands do

        web_port = self._choose_port("web")
        own = {"IdentityIssuers": f"{issuer.name_issuer(web_port)}|{issuer.AUDIENCE}"}
        own["ConsoleOrigin"] = f"http://localhost:{web_port}"  # no passkey belongs to an address
        own |= push_keys.choose_parameters(self.directory)
        own["DocsSite"] = f"http://127.0.0.1:{web_port}/docs"
        with step("sam deploy"):
            deployment.deploy_template(
                built,
                self.directory,
                self.aws_endpoint_url,
                redis_url=self.redis_url
                if self.redis_cluster
                else map_url("redis", self.redis_url),
                redis_cluster=self.redis_cluster,
                mysql_url=map_url("mysql", self.mysql_url),
                parameters=own | dict(parameters),
            )
            self.deployed = deployment.read_deployed(self.aws_endpoint_url)
            self.queues = self.deployed.queues
            arns = deployment.read_secrets(self.aws_endpoint_url)
            if self._kept:
                self._kept.secrets = kept.exchange_secrets(
                    self.aws_endpoint_url, arns, self._kept.secrets
                )
            push_keys.store_key(self.directory, self.aws_endpoint_url, arns)
        with step("Functions"):
            lambda_port = free_port()
            service = deployment.describe_service(
                self.deployed,
                built,
                self.aws_endpoint_url,
                api_port=port,
                port=lambda_port,
                sqs_url=map_url("sqs", self.aws_endpoint_url),
            )
            kept.write_private(self.directory / "lambda.json", service)
            self._save_process(
                aws.start_lambda_service(self.directory, lambda_port, attached=attached)
            )
            self.lambda_url = f"http://127.0.0.1:{lambda_port}"
            self.base_url = f"http://127.0.0.1:{port}"
        with step("Migrations"):
            baseline.require_new_redis(self.redis_url, cluster=self.redis_cluster)
            self.invoke("Migrate", {})
        if self._has_data:
            with step("Queues and archive"):
                bucket = self.deployed.environment["PLAZA_ARCHIVE_BUCKET"]
                kept.restore_emulated(self.directory, self.aws_endpoint_url, self.queues, bucket)
        with step("Web app"):
            issuer.make_key(self.directory, web_port)
            aws.start_web_server(self.directory, web_port, attached=attached)
            self.web_url = f"http://127.0.0.1:{web_port}"
            self.invoke("RefreshIssuers", {})
        kept.write_private(self.directory / "deployed.json", asdict(self.deployed))
        kept.write_private(self.directory / "environment.json", self.environment())  # for `ops`
        if self._kept:
            self._kept.ports = {"api": port, "web": web_port}
            self._kept.save(self.directory)
            kept.forget_messages(self.directory)
        state = {name: getattr(self, name) for name in STATE}
        kept.write_private(self.directory / "stack.json", state)

    def _find_kept(self, *, keep: bool) -> None:
        """Find out what the run before left. Raises CommandError unless this run can use it."""
        before = Kept.load(self.directory)
        self._has_data = before is not None
        if not keep:
            if before is not None:
                raise CommandError(
                    f"{self.directory} has data that this start would delete: choose another "
                    "directory by --dir, or delete it by `make fresh`"
                )
            return
        packages.check_servers()
        versions = {
            part: kept.read_version(part)
            for part in kept.SERVERS
            if not os.environ.get(f"PLAZA_{part.upper()}_URL")
        }
        if before is not None:
            before.check(versions)
        self._kept = before or Kept()
        self._kept.servers = versions

    def _choose_port(self, name: str) -> int:
        """Return the port of the run before, so that a browser finds its session; else a free
        one."""
        before = self._kept.ports.get(name) if self._kept else None
        if before is not None:
            with contextlib.suppress(CommandError):
                return claim_port(before)
        return free_port()

    @contextlib.contextmanager
    def _lock_start(self) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True)
        ours = (self.directory / "lock").exists()
        if not ours and any(self.directory.iterdir()):
            raise CommandError(
                f"{self.directory} is not empty and has no stack; it is left unchanged"
            )
        with (self.directory / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandError(f"another start in {self.directory} is in progress") from None
            yield

    @contextlib.contextmanager
    def _lock_stop(self) -> Iterator[None]:
        """Serialize stops of this stack; the second one finds nothing to do."""
        if not (self.directory / "lock").exists():  # not a stack's: left unchanged
            yield
            return
        with (self.directory / "end-lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _refuse_if_running(self) -> None:
        self._load_servers()
        running = [process for process in self.processes() if process.is_running()]
        owner = self._read_process(OWNER)
        if running and owner is not None and not owner.is_running():
            # It was killed, and its children end by themselves.
            wait_until(lambda: not any(map(Process.is_running, running)), ORPHANS_END_S)
            running = [process for process in running if process.is_running()]
        if not running:
            return
        try:
            base_url = Stack.load(self.directory).base_url
        except StackNotRunning:
            names = ", ".join(f"{process.name} ({process.pid})" for process in running)
            raise CommandError(
                f"parts of a stack still run here: {names}; {self.stop_command()} stops them"
            ) from None
        raise CommandError(
            f"a stack is already running: {base_url}; {self.stop_command()} stops it"
        )

    def _clear(self, *, keep: tuple[str, ...]) -> None:
        """Delete all but ``keep``, and but the data of a stack that keeps it."""
        self.redis = self.mysql = None
        if (self.directory / kept.FILE).exists():
            keep = (*keep, *kept.NAMES)
        for entry in self.directory.iterdir():
            if entry.name in keep:
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def _load_servers(self) -> None:
        with contextlib.suppress(CommandError, FileNotFoundError):
            self.redis = self.redis or servers.load_redis(self.directory / "redis")
        with contextlib.suppress(CommandError, FileNotFoundError):
            self.redis = self.redis or _load_cluster(self.directory / "redis")
        with contextlib.suppress(CommandError, FileNotFoundError):
            self.mysql = self.mysql or servers.load_mysql(self.directory / "mysql")

    def _save_process(self, process: Process) -> None:
        kept.write_private(self.directory / "processes" / f"{process.name}.json", asdict(process))

    def _own_processes(self) -> list[Process]:
        own = map(self._read_process, sorted(REQUIRED_PROCESSES, reverse=True))
        return [process for process in own if process is not None]

    def _read_process(self, name: str) -> Process | None:
        try:
            return Process(
                **json.loads((self.directory / "processes" / f"{name}.json").read_text())
            )
        except (FileNotFoundError, ValueError, TypeError):
            return None


def _load_cluster(directory: Path) -> "Cluster":
    from local.stack.cluster import load_cluster

    return load_cluster(directory)
