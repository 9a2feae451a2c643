"""Runs in a venv with the peers: enqueues jobs and runs a peer's own worker, as it is told.

Each line on standard input is `fill N`, `run N` or `take N`; each is answered with a line.
"""

# mypy: ignore-errors

import asyncio
import sys
from datetime import timedelta


async def procrastinate(where, concurrency):
    import procrastinate as lib

    app = lib.App(connector=lib.PsycopgConnector(conninfo=where))
    done = 0

    @app.task(name="nothing")
    async def nothing(number):
        nonlocal done
        done += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()

        async def fill(count):
            await nothing.batch_defer_async(*({"number": n} for n in range(count)))

        async def run(count):
            nonlocal done
            done = 0
            await app.run_worker_async(
                wait=False, concurrency=concurrency, install_signal_handlers=False
            )
            assert done == count, (done, count)

        await serve({"fill": fill, "run": run})


async def pgqueuer(where, batch):
    import uuid

    import psycopg
    from pgqueuer import PgQueuer
    from pgqueuer.adapters.persistence.queries import EntrypointExecutionParameter, Queries
    from pgqueuer.db import PsycopgDriver
    from pgqueuer.types import QueueExecutionMode

    async with await psycopg.AsyncConnection.connect(where, autocommit=True) as conn:
        driver = PsycopgDriver(conn)
        queries = Queries(driver)
        await queries.install()
        manager = uuid.uuid4()
        limits = {"nothing": EntrypointExecutionParameter(0)}

        async def fill(count):
            await queries.enqueue(["nothing"] * count, [b"x"] * count, [0] * count)

        async def run(count):
            done = 0
            worker = PgQueuer(driver)

            @worker.entrypoint("nothing")
            async def nothing(job):
                nonlocal done
                done += 1

            await worker.qm.run(batch_size=batch, mode=QueueExecutionMode.drain)
            assert done == count, (done, count)

        async def take(count):
            left = count
            while left:
                jobs = await queries.dequeue(
                    batch, limits, manager, None, heartbeat_timeout=timedelta(seconds=30)
                )
                assert jobs
                left -= len(jobs)

        await serve({"fill": fill, "run": run, "take": take})


async def serve(verbs):
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        verb, count = line.split()
        await verbs[verb](int(count))
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run({"procrastinate": procrastinate, "pgqueuer": pgqueuer}[sys.argv[1]](
        sys.argv[2], int(sys.argv[3])
    ))  # fmt: skip
