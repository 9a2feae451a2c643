"""Nothing of a password in an address is ever shown, also where it is written wrongly."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.model.addresses import passwords, split, without_password

SECRETS = st.text("XYZ:/@?#%&=[],;", min_size=1, max_size=12)
"""The capitals are in no other part of an address here."""
AFTER = st.sampled_from(("", "?sslmode=disable", "?user=a@b&sslmode=disable"))
FRONT = (
    "postgresql://ada:{0}@db.example/tasks",
    "postgres://ada:{0}@one:5432,two:5433/tasks",
    "postgresql://:{0}@/tasks",
    "postgresql://ada:{0}@[::1]:5432/tasks",
)
OPTION = (
    "password={0}",
    "passw%6Frd={0}",
    "sslmode=disable&password={0}",
    "PASSWORD={0}",
    "sslpassword={0}&sslmode=disable",
)


def shows_nothing(address: str) -> None:
    assert not set("XYZ") & set(without_password(address)), without_password(address)


@pytest.mark.parametrize("form", FRONT)
@given(secret=SECRETS, after=AFTER)
def test_a_password_before_the_host_is_not_shown_whatever_its_letters(
    form: str, secret: str, after: str
) -> None:
    shows_nothing(form.format(secret) + after)


@pytest.mark.parametrize("option", OPTION)
@given(secret=SECRETS, user=st.sampled_from(("", "ada@", "a:b@")))
def test_a_password_among_the_options_is_not_shown(option: str, secret: str, user: str) -> None:
    shows_nothing(f"postgresql://{user}db.example/tasks?{option.format(secret)}")


@pytest.mark.parametrize("form", FRONT)
@given(secret=st.text(min_size=1), after=AFTER)
def test_an_escaped_password_is_taken_out_and_all_else_stays(
    form: str, secret: str, after: str
) -> None:
    secret = secret.encode("utf-8", "ignore").decode()
    address = form.format(quote(secret, safe="")) + after
    parts = split(address)
    assert parts is not None
    assert unquote(parts.password or "") == secret
    assert not parts.doubtful
    assert without_password(address) == form.replace(":{0}", "") + after
    assert not secret or secret in passwords(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db.example/tasks",
        "postgresql://ada@db.example:5432/tasks?sslmode=disable",
        "postgresql://one:1,two:2/tasks?user=a@b",
        "postgresql://ada@/tasks?host=/run/postgresql",
        "postgresql://%2Frun%2Fpostgresql/tasks",
        "postgresql://[::1]:5432/tasks",
        "postgresql:///tasks?service=x",
        "https://locks.example:8080/board",
        "/a/path:with@all/of?them=1",
        "tasks",
        "",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address: str) -> None:
    assert without_password(address) == address
    assert passwords(address) == []
    assert (parts := split(address)) is None or not parts.doubtful


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:XY@Z@db.example/tasks",
        "postgresql://ada:X/YZ@db.example/tasks",
        "postgresql://ada:X?Y/Z@db.example/tasks",
        "postgresql://ada:XYZ/tasks",
        "postgresql://ada:XYZ",
        "postgresql://db.example/tasks?password=X&YZ",
    ],
)
def test_a_password_that_should_have_been_escaped_is_known_as_one(address: str) -> None:
    parts = split(address)
    assert parts is not None
    assert parts.doubtful
    shows_nothing(address)


def test_a_hash_in_a_password_ends_nothing() -> None:
    assert without_password("postgresql://ada:X#Y@db.example/tasks") == (
        "postgresql://ada@db.example/tasks"
    )
    assert without_password("postgresql://h/tasks?password=X#Y&sslmode=disable") == (
        "postgresql://h/tasks?sslmode=disable"
    )
