"""The name grammar, compared with a second parser that was written only from the protocol."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dibs.model import names
from dibs.model.errors import BadName, NotExact
from dibs.model.task import TAKER, Stamp, Task
from tests.core.oracle import SAFE, Fields, Oracle

pytestmark = pytest.mark.fast("dibs.model")

NONCE = "0123456789"

ORACLE = Oracle()


def fields(task: Task | None) -> Fields | None:
    return None if task is None else task[1:]


idents = st.one_of(
    st.text(min_size=1, max_size=40),
    st.text(alphabet=SAFE + ".=/ \0\n", min_size=1, max_size=40),
    st.binary(min_size=1, max_size=40).map(lambda b: b.decode("utf-8", "surrogateescape")),
    st.sampled_from(["available", "claimed", "f1", "v1.f2", "x.claimed", "..", ".", "=2E"]),
)
owners = st.text(alphabet=SAFE, min_size=1, max_size=40)
nonces = st.text(alphabet="0123456789ABCDEF", min_size=10, max_size=10)
asked = st.one_of(
    st.just((0, 0)),
    st.tuples(st.integers(1, 10**18 - 1), st.one_of(st.just(0), st.integers(1, 10**9 - 1))),
)
times = st.integers(1, 10**11 - 1)
stamps = st.builds(
    lambda fence, attempts, priority, asked: Stamp(fence, attempts, priority, *asked),
    st.integers(0, 10**18 - 1),
    st.one_of(st.just(0), st.integers(1, 10**9 - 1)),
    st.integers(0, 9),
    asked,
)
labels = st.sampled_from(
    ["ci", "claimed", "claimed-boxes", "claimed-by", "free", "held", "lock", "available", "x-1", ""]
)
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)
words = st.one_of(
    st.sampled_from(["available", "claimed", "free", "held", "lock", "later", "asked"]),
    hosts.map("claimed-by-{}".format),
)


def _due(stamp: Stamp, at: int) -> Stamp:
    return stamp._replace(not_before=at)


@st.composite
def spelled(draw: st.DrawFn) -> str:
    """A well-formed name, or a combination of parts of such names."""
    try:
        eid = names.escape(draw(idents))
    except BadName:
        eid = "x"
    stamp = draw(st.one_of(stamps, st.builds(_due, stamps, times)))
    parts = [eid, names.spell_stamp(stamp), f"{draw(owners)}-{draw(nonces)}", draw(words)]
    picked = draw(st.lists(st.sampled_from(parts), max_size=5))
    return ".".join(draw(st.sampled_from([parts, parts[:3], [eid, *parts[1::2]], picked])))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A name with a few characters cut, doubled or replaced."""
    name = draw(spelled())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(name)))
        cut = draw(st.integers(0, 2))
        put = draw(st.text(alphabet="=.-_/aAfFpPqrn059\0\n\udcff é", max_size=2))
        name = name[:at] + put + name[at + cut :]
    return name


def legible(ident: str) -> bool:
    """Whether a file name can hold the text: no surrogates except those of undecodable bytes."""
    try:
        raw = ident.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return raw.decode("utf-8", "surrogateescape") == ident


@given(idents, stamps, times, owners, nonces)
def test_the_grammar_round_trips_every_id_owner_and_stamp(
    ident: str, stamp: Stamp, at: int, owner: str, nonce: str
) -> None:
    assume(legible(ident))
    try:
        names.escape(ident)
    except BadName:
        assume(False)
    claim = f"{names.fold_owner(owner)}-{nonce}"
    stem = names.claim_stem(ident, stamp, claim)
    wanted = (ident, *stamp, claim)
    for word in ("claimed", "held", "asked"):
        task = names.read(f"{stem}.{word}")
        assert task is not None
        assert (task.id, *task.stamp, task.claim) == wanted
        assert task.live == (word != "asked")
        assert (task.state, task.stem, task.owner) == (word, stem, names.fold_owner(owner))
    for folder in ("done", "failed"):
        ended = names.read_any(f"{folder}/{stem}")
        assert ended is not None
        assert (ended.id, *ended.stamp, ended.claim, ended.stem) == (*wanted, stem)
    waiting = names.read(names.unclaimed_name(ident, stamp))
    assert waiting is not None
    assert (waiting.id, waiting.state, waiting.stamp) == (ident, "available", stamp)
    due = stamp._replace(not_before=at)
    later = names.read(names.unclaimed_name(ident, due))
    assert later is not None
    assert (later.id, later.state, later.stamp, later.claim) == (ident, "later", due, "")
    assert names.claimed(later, stamp.fence + 1, claim) == names.claimed(
        waiting, stamp.fence + 1, claim
    )
    assert names.claim_stem(ident, due, claim) == stem, "a name with a claim has no start"
    path = names.unclaimed_name(ident, stamp, "free")
    free = names.read_any(path)
    assert free is not None
    assert (free.id, free.state, free.stamp) == (ident, "free", Stamp(stamp.fence))
    assert path == f"{names.free_folder(ident)}/{free.stem}"


@pytest.mark.parametrize(
    "path",
    [
        *("042d/door.f1", "42D/door.f1", "42/door.f1", "42e/door.f1", "42d/door", "42d/door.free"),
        *("42d/door.f01", "42d/door.f1a2", "42d/door.f1p3", "42d/door.f1.free", "42d/door.f1\n"),
        *("42d/../door.f1", "42d/x/door.f1", "42d/.f1", "42d/do=6Fr.f1", "42d/door.f" + "9" * 19),
    ],
)
def test_a_free_lock_has_one_spelling_in_one_folder(path: str) -> None:
    assert names.read_any(".dibs/free/42d/door.f1") is not None
    assert names.read_any(f".dibs/free/{path}") is None


@given(mutated())
@example("x.available\n")
@example("done/../../x.claimed")
@example("a\0b.claimed")
@example("x.f0.available")
@example("x.f01.available")
@example("x.claimed-by-y.available")
@example("x.f1.claimed-by-")
@example("report.later.available")
@example("x.f1n5.available")
@example("x.f1q1n5.claimed-by-y")
@example("x.f1n5.me-0123456789.claimed")
@example("x.f1q1r0.available")
def test_no_name_outside_the_grammar_is_accepted(name: str) -> None:
    assert fields(names.read(name)) == ORACLE.board(name)
    for folder in ("done", "failed"):
        assert fields(names.read_ended(folder, name)) == ORACLE.ended(folder, name)


plain_ids = (
    st.lists(
        st.sampled_from(["t1", "v2", "claimed-boxes", "by", "x.y", "f3", "free-1"]), min_size=1
    )
    .map(".".join)
    .filter(lambda ident: len(ident.replace(".", "=2E")) <= names.ID_BYTES)
)


@given(plain_ids, hosts)
@example("t1", "ci.claimed-boxes.example")
@example("claimed-boxes.t", "web.free.example")
def test_a_shell_claim_is_requeued_to_its_own_name_for_any_host_name(ident: str, host: str) -> None:
    available = names.read(f"{ident}.available")
    assert available is not None
    claimed = names.read(f"{ident}.claimed-by-{host}")
    if claimed is None:  # an owner that could be the end of another name
        last = host.rpartition(".")[2]
        assert not host or last in ("available", "claimed", "free", "held", "lock")
        return
    assert (claimed.id, claimed.stamp, claimed.owner) == (available.id, available.stamp, host)
    assert claimed.stem == ident
    assert names.read(f"{claimed.stem}.available") == available


@given(st.text(max_size=60))
def test_arbitrary_text_is_parsed_or_ignored_and_never_fails(name: str) -> None:
    assert fields(names.read(name)) == ORACLE.board(name)
    names.read_any(name)


@given(st.lists(st.one_of(mutated(), st.text("ab-=.\n", max_size=6).map("{}.available".format))))
@example(["x.available", "x.available\n", "\nx.available", "x" * 120 + ".available", "y.claimed"])
@example(["x" * 121 + ".available", "\udcff.available", "a=2Eb.available", ".available", ""])
def test_names_are_parsed_alike_together_and_one_by_one(found: list[str]) -> None:
    found = [name for name in found if "\0" not in name]
    tasks = filter(None, map(names.read, found))
    plainest = [
        t for t in tasks if t.name == f"{names.escape(t.id)}.available" and "=" not in t.name
    ]
    assert names.read_never_claimed(found) == plainest


@given(st.text(alphabet=st.characters(codec=None), min_size=1, max_size=30))
@example("\udcc3\udca9")
@example("\ud800")
def test_an_id_either_round_trips_or_is_refused(ident: str) -> None:
    try:
        name = names.unclaimed_name(ident, Stamp(1))
    except BadName:
        return
    task = names.read(name)
    assert task is not None
    assert task.id == ident


@pytest.mark.parametrize(
    ("ident", "escaped"),
    [
        ("task-7", "task-7"),
        ("v1.2", "v1=2E2"),
        ("a/b", "a=2Fb"),
        ("..", "=2E=2E"),
        ("../../etc/passwd", "=2E=2E=2F=2E=2E=2Fetc=2Fpasswd"),
        ("a\0b", "a=00b"),
        ("a\nb", "a=0Ab"),
        ("a=b", "a=3Db"),
        ("é", "=C3=A9"),
        ("\N{SNOWMAN}", "=E2=98=83"),
        ("\N{PILE OF POO}", "=F0=9F=92=A9"),
        ("\udcff", "=FF"),
        ("available", "available"),
        ("f1", "f1"),
    ],
)
def test_an_id_is_escaped_so_that_dots_only_separate_fields(ident: str, escaped: str) -> None:
    assert names.escape(ident) == escaped
    task = names.read(f"{escaped}.available")
    assert task is not None
    assert task.id == ident


@pytest.mark.parametrize(
    "ident", ["", "x" * 121, "x" * 300, "." * 41, "\N{PILE OF POO}" * 11, "\ud800", "a\udfffb"]
)
def test_an_id_that_no_name_can_hold_is_refused(ident: str) -> None:
    with pytest.raises(BadName):
        names.escape(ident)


@pytest.mark.parametrize("ident", ["x" * 120, "." * 40, "\N{PILE OF POO}" * 10])
def test_an_id_of_120_escaped_bytes_is_the_longest(ident: str) -> None:
    assert len(names.escape(ident)) == 120


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("task-7.available", ("task-7", "available", 0, 0, 5, "", 0, 0, 0)),
        ("task-7.claimed", ("task-7", "claimed", 0, 0, 5, "", 0, 0, 0)),
        ("task-7.claimed-by-web.example.org", ("task-7", "claimed", 0, 0, 5, "", 0, 0, 0)),
        ("v1.2.available", ("v1.2", "available", 0, 0, 5, "", 0, 0, 0)),
        ("v1.2.f3.claimed", ("v1.2.f3", "claimed", 0, 0, 5, "", 0, 0, 0)),
        ("v1=2E2.f3.claimed", ("v1.2", "claimed", 3, 0, 5, "", 0, 0, 0)),
        ("x.f12a3p9.available", ("x", "available", 12, 3, 9, "", 0, 0, 0)),
        ("x.f0a1.available", ("x", "available", 0, 1, 5, "", 0, 0, 0)),
        ("x.f0.available", ("x.f0", "available", 0, 0, 5, "", 0, 0, 0)),
        ("x.f01.available", ("x.f01", "available", 0, 0, 5, "", 0, 0, 0)),
        ("x.f1a0.available", ("x.f1a0", "available", 0, 0, 5, "", 0, 0, 0)),
        ("x.f1p5.available", ("x.f1p5", "available", 0, 0, 5, "", 0, 0, 0)),
        ("report.later.available", ("report.later", "available", 0, 0, 5, "", 0, 0, 0)),
        ("report.asked.available", ("report.asked", "available", 0, 0, 5, "", 0, 0, 0)),
        ("x.f0n7.later", ("x", "later", 0, 0, 5, "", 0, 0, 7)),
        ("x.f3a1p9q2r1n1700000000.later", ("x", "later", 3, 1, 9, "", 2, 1, 1_700_000_000)),
        ("x.f3q2r1.available", ("x", "available", 3, 0, 5, "", 2, 1, 0)),
        ("x.f3q2.claimed-by-web", ("x", "claimed", 3, 0, 5, "", 2, 0, 0)),
        ("x.f3n7.available", ("x.f3n7", "available", 0, 0, 5, "", 0, 0, 0)),
        ("x.f3r1.available", ("x.f3r1", "available", 0, 0, 5, "", 0, 0, 0)),
        (f"x.f1q1.me-{NONCE}.asked", ("x", "asked", 1, 0, 5, f"me-{NONCE}", 1, 0, 0)),
        ("a=2e.available", ("a=2e", "available", 0, 0, 5, "", 0, 0, 0)),
        ("a=41.available", ("a=41", "available", 0, 0, 5, "", 0, 0, 0)),
        ("lock.f1.free", ("lock", "free", 1, 0, 5, "", 0, 0, 0)),
        (f"x.f1.me-{NONCE}.claimed", ("x", "claimed", 1, 0, 5, f"me-{NONCE}", 0, 0, 0)),
        (f"x.f1.me-{NONCE}.held", ("x", "held", 1, 0, 5, f"me-{NONCE}", 0, 0, 0)),
        (f"x.f0.dibs-{NONCE}.claimed", ("x", "claimed", 0, 0, 5, f"dibs-{NONCE}", 0, 0, 0)),
    ],
)
def test_a_name_determines_the_task(name: str, wanted: Fields) -> None:
    assert ORACLE.board(name) == wanted
    assert fields(names.read(name)) == wanted


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "notes.txt",
        ".available",
        ".x.available",
        "x.Available",
        "x.AVAILABLE",
        "x.later",
        "x.asked",
        "x.f1.later",
        "x.f1n0.later",
        "x.f1n07.later",
        "x.f1n123456789012.later",
        "v1.2.f1n7.later",
        "x.f1.asked",
        f"x.f1n7.me-{NONCE}.later",
        f"x.f1n7.me-{NONCE}.asked",
        "x.held",
        "x.f1.held",
        "x.lock",
        "x.claimed-by-",
        "x.claimed-by-..",
        "a/b.available",
        "../x.available",
        "done/../../x.claimed",
        "a\0b.available",
        "x" * 121 + ".available",
        "." + "x" * 244 + ".available",
    ],
)
def test_an_unknown_name_is_no_task(name: str) -> None:
    assert names.read(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "x.claimed.available",
        "x.available.claimed",
        "x.lock.available",
        "x.free.claimed",
        "x.claimed-by-y.available",
        "x.claimed.claimed-by-y",
        "x.claimed-by-y.lock",
        "x.y.held.available",
    ],
)
def test_an_ambiguous_name_is_no_task(name: str) -> None:
    assert names.read(name) is None


def test_every_name_that_the_core_can_make_fits_a_directory_entry() -> None:
    ident, owner = "\N{PILE OF POO}" * 10, names.fold_owner("o" * 200)
    stamp = Stamp(10**18 - 1, 10**9 - 1, 9, 10**18 - 1, 10**9 - 1)
    stem = names.claim_stem(ident, stamp, f"{owner}-{NONCE}")
    produced = [f"{stem}.{word}" for word in ("claimed", "held", "asked")]
    produced += [names.unclaimed_name(ident, stamp)]
    produced += [names.unclaimed_name(ident, _due(stamp, names.NOT_BEFORE_MAX))]
    produced += [names.unclaimed_name(ident, stamp, "free").rpartition("/")[2]]
    produced += [stem, f"{stem}.{NONCE}", f"{names.escape(ident)}.lock.{NONCE}"]
    assert max(len(name.encode()) for name in produced) <= 255
    assert names.read(produced[0]) is not None


@pytest.mark.parametrize(
    ("owner", "folded"),
    [
        ("web-3", "web-3"),
        ("agent 7/é", "agent-7--"),
        ("dibs", "dibs_"),
        ("o" * 256, "o" * 40),
        ("x.y", "x-y"),
    ],
)
def test_an_owner_is_folded_to_the_characters_of_a_name(owner: str, folded: str) -> None:
    assert names.fold_owner(owner) == folded


@pytest.mark.parametrize("owner", ["", "a\nb", "a\x1b[2J", "\ud800", "o" * 257, "\0"])
def test_an_owner_with_control_characters_is_refused(owner: str) -> None:
    with pytest.raises(BadName):
        names.fold_owner(owner)


@given(st.text(max_size=300))
def test_no_owner_is_folded_to_the_reserved_one(owner: str) -> None:
    try:
        folded = names.fold_owner(owner)
    except BadName:
        return
    assert folded != TAKER
    assert 1 <= len(folded) <= 40
    assert set(folded) <= set(SAFE)


@given(idents, stamps)
def test_a_name_that_does_not_start_with_an_id_is_not_a_name_of_it(
    ident: str, stamp: Stamp
) -> None:
    assume(legible(ident))
    try:
        begins = names.spellings(ident)
    except BadName:
        return
    assert names.unclaimed_name(ident, stamp).startswith(begins)
    plain = f"{ident}.available"
    task = names.read(plain) if "/" not in plain and "\0" not in plain else None
    if task is not None and task.id == ident:
        assert plain.startswith(begins)


@pytest.mark.parametrize("text", ["x", "", "x.f1", "x.available.", "a/b", "../x", "\0"])
def test_a_bare_id_is_not_exact(text: str) -> None:
    with pytest.raises(NotExact):
        names.exact(text)


def test_a_printed_claim_matches_each_place_where_the_claim_can_be() -> None:
    stem = f"x.f1.me-{NONCE}"
    wanted = (
        *(f"{stem}.claimed", f"{stem}.held", f"failed/{stem}", f"done/{stem}"),
        f"{stem}.asked",
    )
    assert names.exact(stem) == wanted
    for name in wanted:
        assert names.exact(name) == (name,)


@pytest.mark.parametrize("metadata", ["", "m" * 1024, "\N{PILE OF POO}" * 1024, "a\nb"])
def test_metadata_may_have_1024_characters(metadata: str) -> None:
    assert names.check_metadata(metadata) == metadata


@pytest.mark.parametrize("metadata", ["m" * 1025, "\ud800"])
def test_metadata_that_no_record_can_hold_is_refused(metadata: str) -> None:
    with pytest.raises(BadName):
        names.check_metadata(metadata)
