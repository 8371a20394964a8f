"""Clients in processes of their own, which begin together and share one queue."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from time import perf_counter
from typing import TypeVar, cast

from bedstone.bench.load.answered import Answer
from bedstone.bench.load.asked import Ask
from bedstone.bench.load.busy import Busy
from bedstone.bench.load.messages import (
    HEAD,
    Begin,
    Ended,
    Message,
    Opening,
    Ready,
    Result,
    emit_message,
    parse_message,
)
from bedstone.bench.load.queue import write_queue
from bedstone.bench.load.server import Server, emit_body
from bedstone.errors import BedstoneError

MODULE = "bedstone.bench.load.process"
BEGIN_SECONDS = 0.02
"""From the word that all are to begin to when they do."""

MessageT = TypeVar("MessageT", Ready, Result)

END_SECONDS = 2.0
"""How long a process has to end."""

CLIENTS_EACH, MOST_PROCESSES = 8, 8
MOST_CLIENTS = CLIENTS_EACH * MOST_PROCESSES
"""More of them have no more processes."""


@dataclass(frozen=True, slots=True)
class Team:
    """So many clients in so many processes; a process has one at least."""

    clients: int
    processes: int

    @property
    def shares(self) -> list[int]:
        """The clients of each process."""
        count = min(self.processes, self.clients)
        return [self.clients // count + (at < self.clients % count) for at in range(count)]


@dataclass(frozen=True, slots=True)
class Driven:
    """The answers of a round by request, and how busy each process was."""

    answers: list[Answer]
    busy: list[Busy]


def fitting_processes(clients: int, cores: int) -> int:
    """How many processes to have: one for eight clients, and half of the cores for the server."""
    return max(1, min(-(-clients // CLIENTS_EACH), cores // 2, MOST_PROCESSES))


async def drive(
    server: Server, asks: Sequence[Ask], team: Team, done: Callable[[int], None]
) -> Driven:
    """Send every request, each when it is due or as soon as a client is free.

    `done` is told how many have ended. No process is left behind, however it ends.

    Raises `BedstoneError`: a process ended before it had told its answers.
    """
    members: list[_Member] = []
    with TemporaryFile() as file:
        write_queue(file, [emit_body(server, ask) for ask in asks], [ask.at for ask in asks])
        try:
            for clients in team.shares:
                members.append(await _Member.start(len(members) + 1, file.fileno()))
                await members[-1].tell(Opening(server, clients))
            for member in members:
                await member.hear(Ready)
            begin = Begin(perf_counter() + BEGIN_SECONDS)
            for member in members:
                await member.tell(begin)
            noted = _Noted(done, len(members))
            results = await asyncio.gather(*(member.result(noted) for member in members))
        finally:
            await asyncio.gather(*(member.end() for member in members))
    done(len(asks))
    answers = [answer for result in results for answer in result.answers]
    return Driven(
        sorted(answers, key=lambda answer: answer.ask), [result.busy for result in results]
    )


class _Noted:
    """How many requests have ended in each process."""

    def __init__(self, done: Callable[[int], None], members: int) -> None:
        self._done = done
        self._ended = [0] * members

    def note(self, member: int, ended: int) -> None:
        """Note it of a member, counted from 1, and tell the sum."""
        self._ended[member - 1] = ended
        self._done(sum(self._ended))


class _Member:
    """One of the processes."""

    def __init__(self, number: int, process: Process) -> None:
        self._number = number
        self._process = process
        # both are pipes
        self._in = cast("asyncio.StreamWriter", process.stdin)
        self._out = cast("asyncio.StreamReader", process.stdout)

    @classmethod
    async def start(cls, number: int, queue: int) -> "_Member":
        """Start it; signals of a terminal are for the one that starts it."""
        command = (sys.executable, "-P", "-m", MODULE, str(queue))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, pass_fds=(queue,), process_group=0
        )
        return cls(number, process)

    async def tell(self, message: Message) -> None:
        """Send a message.

        Raises `BedstoneError`: the process has ended.
        """
        try:
            self._in.write(emit_message(message))
            await self._in.drain()
        except OSError as error:
            raise await self._lost() from error

    async def hear(self, kind: type[MessageT]) -> MessageT:
        """The next message, which has to be of a kind.

        Raises `BedstoneError`: the process ends without it.
        """
        message = await self._next()
        if not isinstance(message, kind):
            raise await self._lost()
        return message

    async def result(self, noted: _Noted) -> Result:
        """Its last words, and what it says before them noted.

        Raises `BedstoneError`: the process ends without them.
        """
        while isinstance(message := await self._next(), Ended):
            noted.note(self._number, message.requests)
        if not isinstance(message, Result):
            raise await self._lost()
        return message

    async def end(self) -> None:
        """Have no process left: it ends by itself when nobody listens to it any more."""
        self._in.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _next(self) -> Message:
        try:
            head = await self._out.readexactly(HEAD.size)
            text = await self._out.readexactly(HEAD.unpack(head)[0])
        except asyncio.IncompleteReadError as error:
            raise await self._lost() from error
        return parse_message(text)

    async def _lost(self) -> BedstoneError:
        """What to say of a process that is of no use any more."""
        await self.end()
        code = self._process.returncode
        return BedstoneError(
            f"client process {self._number} ended with code {code} before it had told its answers"
        )
