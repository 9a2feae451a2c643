"""The verbs, with the state of the board before, during and after each."""

from __future__ import annotations

from dataclasses import dataclass

from tests.stress.syscalls import boards
from tests.stress.syscalls.boards import Prepare

AGED = boards.AGED


@dataclass(frozen=True, slots=True)
class Scenario:
    """One verb on one board; what it does to the task or lock `t`."""

    name: str
    prepare: Prepare
    before: str
    after: str
    between: tuple[str, ...] = ()
    """The harmless states that an interrupted or refused verb may leave."""
    late: float = 0.0
    """The age of the board when the verb runs."""
    person: tuple[str, ...] = ()
    """The kinds of findings that no janitor can repair."""
    others: tuple[str, ...] = ("other",)
    """The bystanders."""
    removes: bool = False
    """Whether the verb removes the payload of `t`."""

    @property
    def is_lock(self) -> bool:
        return self.after.startswith(("held", "free"))


AVAILABLE, CLAIMED, HELD = "available f0a0p5", "claimed f1a0p5", "held f1a0p5"
BACK = "available f1a0p5"
PLAIN, TAKEN, APART = "claimed f0a0p5", "claimed f0a0p5 taken", "failed f0a0p5"
WORKER = ("--owner", boards.OWNER)
_plain = (TAKEN, APART)

SCENARIOS = (
    Scenario("add", boards.add, "", AVAILABLE, ("draft",)),
    Scenario("add, strictly durable", boards.add_strictly, "", AVAILABLE, ("draft",)),
    Scenario("add a forgotten id again", boards.add_again, "", "available f4a0p5", ("draft",)),
    Scenario("claim", boards.waiting("claim", *WORKER), AVAILABLE, CLAIMED, (BACK,)),
    Scenario(
        "claim, strictly durable",
        boards.waiting("claim", *WORKER, settings=boards.STRICT),
        AVAILABLE,
        CLAIMED,
        (BACK,),
    ),
    Scenario("claim ID", boards.waiting("claim", "t", *WORKER), AVAILABLE, CLAIMED, (BACK,)),
    Scenario(
        "claim a stale one",
        boards.held("claim", "t", *WORKER),
        CLAIMED,
        "claimed f2a1p5",
        ("available f1a1p5", "available f2a1p5"),
        AGED,
    ),
    Scenario("beat", boards.held("beat", "CLAIM"), CLAIMED, CLAIMED),
    Scenario("verify", boards.held("verify", "CLAIM"), CLAIMED, CLAIMED),
    Scenario("done", boards.held("done", "CLAIM"), CLAIMED, "done f1a0p5"),
    Scenario(
        "done, strictly durable",
        boards.held("done", "CLAIM", settings=boards.STRICT),
        CLAIMED,
        "done f1a0p5",
    ),
    Scenario("fail", boards.held("fail", "CLAIM"), CLAIMED, "available f1a1p5"),
    Scenario(
        "fail at the limit",
        boards.held("fail", "CLAIM", settings=boards.ONCE),
        CLAIMED,
        "failed f1a1p5",
    ),
    Scenario("release", boards.held("release", "CLAIM"), CLAIMED, BACK),
    Scenario(
        "release, strictly durable",
        boards.held("release", "CLAIM", settings=boards.STRICT),
        CLAIMED,
        BACK,
    ),
    Scenario("reap", boards.held("reap"), CLAIMED, "available f1a1p5", late=AGED),
    Scenario(
        "reap at the limit",
        boards.held("reap", settings=boards.ONCE),
        CLAIMED,
        "failed f1a1p5",
        late=AGED,
    ),
    Scenario("reap a plain claim", boards.plain("reap"), PLAIN, AVAILABLE, _plain, AGED),
    Scenario(
        "reap a plain claim at the limit",
        boards.plain("reap", settings=boards.ONCE),
        PLAIN,
        APART,
        (TAKEN,),
        AGED,
    ),
    Scenario(
        "reap a plain claim without a lock",
        boards.plain("reap", locked=False, by="some.host"),
        PLAIN,
        AVAILABLE,
        _plain,
        AGED,
    ),
    Scenario("finish a take", boards.incomplete_takeover, TAKEN, AVAILABLE, (PLAIN, APART), AGED),
    Scenario(
        "finish a takeover whose lock was moved aside",
        boards.incomplete_takeover_aside,
        TAKEN,
        AVAILABLE,
        (PLAIN, APART),
        AGED,
    ),
    Scenario(
        "force-release",
        boards.held("force-release", "CLAIM", "--reason", "stuck"),
        CLAIMED,
        BACK,
    ),
    Scenario(
        "force-release a plain claim",
        boards.plain("force-release", "SIGHT", "--reason", "stuck"),
        PLAIN,
        AVAILABLE,
        _plain,
    ),
    Scenario("requeue", boards.ended("requeue", "CLAIM", failed=True), "failed f1a0p5", BACK),
    Scenario("requeue a done task", boards.ended("requeue", "CLAIM"), "done f1a0p5", BACK),
    Scenario("park", boards.waiting("park", "t.available"), AVAILABLE, "failed f0a0p5"),
    Scenario("park a claim", boards.held("park", "CLAIM"), CLAIMED, "failed f1a0p5"),
    Scenario("park a plain claim", boards.plain("park", "SIGHT"), PLAIN, APART, (TAKEN,)),
    Scenario(
        "prioritize",
        boards.waiting("prioritize", "t.available", "9"),
        AVAILABLE,
        "available f0a0p9",
    ),
    Scenario(
        "purge",
        boards.ended("purge", "--done", "--older-than", "0"),
        "done f1a0p5",
        "",
        removes=True,
    ),
    Scenario("forget", boards.vanished, "", "", late=AGED, person=("gone",), removes=True),
    Scenario("acquire", boards.no_lock, "", HELD, ("free f0a0p5", "free f1a0p5")),
    Scenario(
        "acquire a lock whose adder died",
        boards.dead_adder_of_lock,
        "",
        HELD,
        ("free f0a0p5", "free f1a0p5"),
    ),
    Scenario(
        "acquire a free lock",
        boards.lock("acquire", "t", *WORKER, free=True),
        "free f1a0p5",
        "held f2a0p5",
        ("free f2a0p5",),
    ),
    Scenario(
        "acquire an expired lock",
        boards.lock("acquire", "t", *WORKER),
        HELD,
        "held f2a0p5",
        ("free f1a0p5", "free f2a0p5"),
        AGED,
    ),
    Scenario("renew", boards.lock("renew", "CLAIM", "--ttl", "60"), HELD, HELD),
    Scenario("release of a lock", boards.lock("release", "CLAIM"), HELD, "free f1a0p5"),
    Scenario(
        "resume",
        boards.held("claim", "t", "--resume", *WORKER),
        CLAIMED,
        "claimed f2a0p5",
        ("available f2a0p5",),
        AGED,
    ),
    Scenario(
        "check --repair",
        boards.shambles,
        CLAIMED,
        "available f1a1p5",
        late=AGED,
        others=("other", "u", "v"),
    ),
    Scenario("reap nothing alive", boards.alive("reap"), CLAIMED, CLAIMED, late=AGED),
    Scenario("reap nothing plain and alive", boards.alive_plain("reap"), PLAIN, PLAIN, late=AGED),
    Scenario(
        "check --repair, all alive",
        boards.alive_plain("check", "--repair"),
        PLAIN,
        PLAIN,
        late=AGED,
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
