#!/bin/sh
# A worker of a fleet that does not use dibs: it adds its own reports and claims them with mv.
cd "$1" || exit 1
owner=$2 turn=0

rest() {
  kill -0 "$PPID" 2>/dev/null || exit 0
  sleep 2
}

offer() {
  at=$(date +%H%M%S)
  for part in a b c; do
    echo "Sum up what part $part of the fleet did until $at." >"report-$at$part.available"
  done
}

beat() { echo "$(date +%s) $(uname -n)" >"$stem.lock"; }

# Every fifth report takes too long, and has no heartbeat meanwhile.
work() {
  turn=$((turn + 1)) left=4
  [ $((turn % 5)) -ne 0 ] || left=16
  while [ "$left" -gt 0 ]; do
    [ "$left" -gt 4 ] || beat
    rest
    left=$((left - 1))
  done
}

while [ -d .dibs ]; do
  set -- report-*.available
  [ -e "$1" ] || offer
  for task in report-*.available; do
    stem=${task%.available}
    mv "$task" "$stem.claimed-by-$owner" 2>/dev/null || continue
    beat
    work
    rm -f "$stem.claimed-by-$owner" "$stem.lock"
  done
  rest
done
