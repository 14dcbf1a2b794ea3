"""Where workers come from: a cluster of processes on this machine, or any running Dask scheduler."""

import asyncio
import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stagescope.errors import InputError, StagescopeError
from stagescope.sweeping.worker import versions

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 6
_LOCAL_SETTINGS = {
    "distributed.scheduler.allowed-failures": 1_000_000,  # deaths are counted per point, by the attempts on disk
    "distributed.scheduler.worker-ttl": None,  # a kernel may hold the interpreter, and so the heartbeat, for hours
    "distributed.deploy.lost-worker-timeout": "1000h",  # on a busy machine a restart takes long; `mend` sees the lost ones
    "distributed.worker.profile.enabled": False,  # it would stop the kernels a hundred times a second to look at the stack
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
_ONE_THREAD = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


class Pool:
    """A Dask client and how many workers stand behind it."""

    def __init__(self, client: "Client", wanted: int | None = None, cluster: Any = None) -> None:
        self.client, self._wanted, self._cluster = client, wanted, cluster
        self._gone: dict[Any, float] = {}

    def workers(self) -> int:
        """Workers that are there now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def mend(self) -> None:
        """Replace local workers that are not restarted: a nanny whose first process was killed at its start gives up."""
        if self._cluster is None:
            return
        for name, nanny in list(self._cluster.workers.items()):
            now = time.monotonic()
            if nanny.pid is not None:
                self._gone.pop(name, None)
            elif now - self._gone.setdefault(name, now) > 10.0:  # seconds without a process: it is not being started again
                del self._gone[name], self._cluster.workers[name]
                self._cluster.loop.add_callback(nanny.close)
                self._cluster.scale(self._wanted)

    def stop(self) -> None:
        """End local workers at once: what they compute is of no use any more, and they have nothing to put in order."""
        for nanny in list(self._cluster.workers.values()) if self._cluster is not None else ():
            if nanny.pid is not None:
                nanny.close_gracefully()  # or it would start another
                try:
                    os.kill(nanny.pid, 9)
                except ProcessLookupError:
                    continue


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quiet() -> None:
    """Silence Dask's log messages on lost workers and schedulers; we report these ourselves."""
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextmanager
def local_pool(workers: int) -> Iterator[Pool]:
    """One single-threaded process for each worker on this machine; killed ones are started again."""
    from dask import config
    from distributed import Client, LocalCluster

    _quiet()
    environment = {name: value for name, value in _ONE_THREAD.items() if name not in os.environ}
    with config.set(_LOCAL_SETTINGS):
        try:
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL + 1,
                env=environment,
                preload=["stagescope.sweeping.preload"],
            )
        except (RuntimeError, OSError) as error:
            raise StagescopeError(
                f"the workers could not start: {error}; in a script, call sweep under `if __name__ == '__main__':`"
            ) from None
        try:
            with Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False) as client:
                pool = Pool(client, workers, cluster)
                try:
                    yield pool
                finally:
                    pool.stop()
        finally:
            cluster.close(timeout=10)


@contextmanager
def remote_pool(address: str) -> Iterator[Pool]:
    """The workers of a running scheduler, once it answers and they run the same code as this client."""
    from distributed import Client

    _quiet()
    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own in this one
            thread.submit(asyncio.run, _knock(address)).result()
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except ValueError as error:
        raise InputError(f"scheduler {address!r} is no address: {error}; it looks like tcp://HOST:8786") from None
    except OSError:
        raise StagescopeError(
            f"no scheduler answers at {address} within {CONNECT_SECONDS} s; start one with `dask scheduler`, or check the address"
        ) from None
    except TypeError as error:  # no certificate for tls://
        raise StagescopeError(f"the scheduler {address} cannot be used: {error}") from None
    except MemoryError:  # its first words, read as the length of a message
        raise StagescopeError(f"what answers at {address} is no Dask scheduler; check the address") from None
    with client:
        _same_versions(client)
        yield Pool(client)


async def _knock(address: str) -> None:
    """Connect once, in limited time: a client would wait for ever for a server that accepts and never answers."""
    from distributed import Security
    from distributed.comm.core import connect

    security = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(address, timeout=CONNECT_SECONDS, **security), CONNECT_SECONDS)
    comm.abort()


def _same_versions(client: "Client") -> None:
    """Refuse a cluster whose scheduler or workers run other versions than this client."""
    mine = versions()
    found: Any = client.get_versions(packages=["stagescope"])
    _compare("the scheduler", found["scheduler"], {name: mine[name] for name in ("python", "stagescope", "dask")})
    for address, worker in found["workers"].items():
        _compare(f"worker {address}", worker, mine)


def _compare(who: str, found: Any, mine: dict[str, str]) -> None:
    packages = {**found["packages"], "python": ".".join(str(found["packages"]["python"]).split(".")[:2])}
    for name, here in mine.items():
        there = packages.get(name) or "missing"
        if there != here:
            raise StagescopeError(f"{who} has {name} {there}, this client {here}; install the same version on both")
