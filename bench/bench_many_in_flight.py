"""
How near to the ideal is `generate_many` at a server that answers many prompts at once?

The server runs in a process of its own. It takes as long for each answer as it is told, whatever
else it does, and streams it in pieces. The ideal is that time for each wave of prompts that are in
flight together, and nothing else.

    python bench/bench_many_in_flight.py [--in-flight 64] [--waves 4] [--seconds 2] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection

from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.predictors import OpenAICompatiblePredictor

PIECES = 40
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(document: object) -> bytes:
    data = b"data: " + json.dumps(document).encode() + b"\n\n"
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def piece(text: str, reason: str | None = None) -> bytes:
    return chunk({"choices": [{"delta": {"content": text}, "finish_reason": reason}]})


async def serve(told: Connection, seconds: float, pieces: int) -> None:
    counts = {"prompt_tokens": 100, "completion_tokens": pieces}
    end = piece("", "stop") + chunk({"choices": [], "usage": counts}) + b"e\r\ndata: [DONE]\n\n\r\n"
    loop = asyncio.get_running_loop()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                began_s = loop.time()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(size)
                writer.write(HEAD)
                for i in range(1, pieces + 1):
                    await asyncio.sleep(began_s + seconds * i / pieces - loop.time())
                    writer.write(piece(f"word{i} "))
                writer.write(end + b"0\r\n\r\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    told.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run(told: Connection, seconds: float, pieces: int = PIECES) -> None:
    asyncio.run(serve(told, seconds, pieces))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--waves", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    heard, told = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.Process(target=run, args=(told, arguments.seconds), daemon=True)
    server.start()
    prompts = [Prompt(text=f"question {i}") for i in range(arguments.in_flight * arguments.waves)]
    ideal_s = arguments.seconds * arguments.waves
    took = []
    with OpenAICompatiblePredictor(f"http://127.0.0.1:{heard.recv()}", model="any") as predictor:
        for _ in range(arguments.rounds):
            began_s, busy_s = time.perf_counter(), time.process_time()
            answers = predictor.generate_many(prompts, batch_size=arguments.in_flight)
            took.append(time.perf_counter() - began_s)
            busy_s = time.process_time() - busy_s
            assert {PIECES} == {answer.new_tokens for answer in answers}
            print(
                f"{len(prompts)} prompts, {arguments.in_flight} in flight: {took[-1]:.3f} s, "
                f"ideal {ideal_s:.3f} s, {100 * (took[-1] / ideal_s - 1):+.1f} %, "
                f"{1000 * busy_s / len(prompts):.2f} ms of this process for each"
            )
    server.terminate()
    print(f"median {100 * (statistics.median(took) / ideal_s - 1):+.1f} % over the ideal")


if __name__ == "__main__":
    main()
