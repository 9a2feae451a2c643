"""The examples at the end of each verb's help; imported only when help is printed."""

from __future__ import annotations

EXAMPLES = {
    "dibs": (
        "dibs init && dibs add report-7",
        'claim=$(dibs claim --owner web-3) && make report && dibs done "$claim"',
    ),
    "board": ("dibs /srv/tasks", "dibs board /srv/tasks owner=web-3 'age>5m'"),
    "demo": ("dibs demo",),
    "init": (
        "dibs init tasks",
        "dibs init ../project-tasks",
        "dibs -d 'postgresql://db.example/tasks' init",
    ),
    "add": (
        "dibs add report-7 --file report-7.json --priority 9",
        "dibs add nightly --in 1h",
        "dibs add a b c --max-waiting 1000 --wait 5m",
    ),
    "claim": (
        "claim=$(dibs claim --owner web-3 --ttl 5m --wait)",
        "dibs claim report-7 --resume report-7.f3.web-3-0A1B2C3D4E",
        "dibs claim --count 10 --owner web-3",
    ),
    "beat": ('dibs beat "$claim"', 'dibs beat "$claim" --ttl 15m --note "epoch 3 of 10"'),
    "note": ('dibs note "epoch 3 of 10"',),
    "verify": ('dibs verify "$claim" || exit 5',),
    "ask": ('dibs ask "$claim" "keep the old API?"', 'make plan | dibs ask "$claim" -'),
    "done": ('dibs done "$claim" || exit 5', 'dibs done "$claim" --result answer.json'),
    "fail": (
        'dibs fail "$claim" --reason "no route to host"',
        'dibs fail "$claim" --reason "rate limit" --retry-in 5m',
    ),
    "release": (
        'dibs release "$claim" --in 5m',
        'dibs release "$lock" --reason "not needed"',
        "dibs release --mine",
    ),
    "run": (
        "dibs run --loop --wait -- sh -c 'build < \"$DIBS_PAYLOAD\"'",
        "dibs -d /srv/jobs run --lock nightly --quiet -- ./backup.sh",
        "dibs run --lock gpu --slots 4 --wait -- ./train.sh",
        "dibs run --loop --wait --log --timeout 2h --idle 10m -- ./work.sh",
    ),
    "acquire": (
        'lock=$(dibs acquire deploy --owner web-3 --ttl 60 --meta "release 1.4")',
        'dibs acquire deploy --lease "$lock" --ttl 120',
        "dibs acquire gpu --slots 4 --wait 10m",
    ),
    "mcp": (
        "dibs -d /srv/tasks mcp --owner claude-1",
        "claude mcp add tasks -- dibs -d /srv/tasks mcp --owner claude-1",
    ),
    "serve": (
        "dibs -d /srv/tasks serve",
        "dibs serve --listen '0.0.0.0:7373' --tls-cert cert.pem --tls-key key.pem",
    ),
    "token": (
        "dibs token add ci --role worker --prefix ci/",
        "dibs token ls",
        "dibs token rm ci",
    ),
    "deliveries": (
        "dibs deliveries",
        "dibs deliveries send --all",
        "dibs deliveries rm --all",
    ),
    "status": ("dibs status deploy", "dibs --json status deploy"),
    "ls": ("dibs ls --state stale", "dibs ls owner=web-3 'age>5m'", "dibs ls --mine"),
    "show": ("dibs show report-7", "dibs show report-7 --payload > report-7.json"),
    "logs": ("dibs logs report-7 --follow", "dibs logs report-7 --attempt 2"),
    "log": ("dibs log report-7", "dibs log --last 20 --follow"),
    "watch": (
        "dibs watch state=stale --notify 'notify-send -u critical'",
        "dibs --json watch id=deploy",
    ),
    "wait": (
        "dibs wait report-7 report-8 --timeout 2h",
        "dibs wait 'id^=report-' && make summary",
    ),
    "stats": ("dibs stats --fail-if 'stale>5' --fail-if 'oldest>15m'", "dibs stats --prometheus"),
    "pauses": ("dibs pauses", "dibs --json pauses"),
    "force-release": ('dibs force-release report-7.f3.web-3-0A1B2C3D4E --reason "host is down"',),
    "requeue": (
        "dibs requeue failed/report-7.f3a5.web-3-0A1B2C3D4E",
        "dibs requeue --from failed.txt --dry-run",
    ),
    "park": ('dibs park report-7.available --reason "waits for the fix"',),
    "answer": ('dibs answer report-7.f3.web-3-0A1B2C3D4E.asked "yes, until 2.0"',),
    "prioritize": ("dibs prioritize report-7.available 9",),
    "pause": (
        'dibs pause --reason "deploy 2.1" --for 30m',
        "dibs pause --host 'web-*' --reason \"new kernel\"",
    ),
    "resume": ("dibs resume", "dibs resume --host 'web-*'"),
    "undo": (
        "dibs undo",
        "dibs undo report-7.f0p9.available report-7.available",
        "dibs undo --all report-7.f0p9.available report-7.available",
    ),
    "reap": (
        "dibs reap --every 30s",
        'dibs reap report-7.f3.web-3-0A1B2C3D4E --reason "host is down"',
    ),
    "check": ("dibs check --repair", "dibs -d /mnt/tasks check --probe --peer /srv/tasks"),
    "purge": ("dibs purge --done --older-than 7d",),
    "forget": ("dibs forget report-7", "dibs forget --from old-ids.txt"),
    "copy": ("dibs copy /srv/tasks 'postgresql://db.example/tasks'",),
    "upgrade": ("dibs -d /srv/tasks upgrade",),
    "where": ("dibs where", "dibs --json where"),
    "paths": ("dibs paths", "dibs --json paths"),
    "prime": ("dibs prime", "dibs --json prime"),
    "setup": (
        "dibs setup claude --dry-run",
        "dibs setup agents-md --yes",
        "dibs setup bash --yes",
        "dibs setup claude --remove --yes",
    ),
    "hook": ("dibs hook session-start",),
    "completion": (
        'eval "$(dibs completion bash)"',
        "dibs completion fish > dibs.fish",
    ),
}


def examples(prog: str) -> str:
    """The last lines of the help of `dibs` or `dibs VERB`; empty without examples."""
    from dibs.cli.grammar import ALIASES

    word = prog.rpartition(" ")[2]
    lines = EXAMPLES.get(ALIASES.get(word, word), ())
    title = "examples" if len(lines) > 1 else "example"
    return "".join(["\n", title, ":\n", *(f"  {line}\n" for line in lines)]) if lines else ""
