# A worker as agents write it from the table in the protocol: it uses mv, echo and rm.
# Only the lines in $log are for the test.
#   worker.sh BOARD LOG HOST TTL SUFFIX WORDS

cd "$1" || exit 1
log=$2 host=$3 ttl=$4 suffix=$5 words=$6
hostname() { echo "$host"; }
# The time before a step and, as the last word, the time after it: the step happened in between.
note() { echo "$1 $$ $2 $task $(date +%s%N)" >> "$log"; }

heartbeat() {
  at=$(date +%s%N)
  if [ "$words" ]; then
    echo "claim_time=$(date +%s); $(hostname)" > "$task.lock"
  else
    echo "$(date +%s) $(hostname)" > "$task.lock"
  fi
  note beat "$at"
}

verify() {
  { read -r line < "$task.lock"; } 2>/dev/null || return 1
  since=${line#claim_time=}
  since=${since%%[!0-9]*}
  case $line in *" $(hostname)") ;; *) return 1 ;; esac
  [ $(($(date +%s) - since)) -lt "$ttl" ]
}

work() {
  tasks=$((tasks + 1))
  if [ $((tasks % 40)) = 7 ]; then
    for _ in 1 2 3 4; do
      sleep "$((ttl * 3 / 10)).$((ttl * 3 % 10))"
      verify || return 1
      heartbeat
    done
  elif [ $((tasks % 60)) = 31 ]; then
    sleep $((ttl + 1))
  elif [ $((tasks % 12)) = 5 ]; then
    sleep "$ttl"
    heartbeat # late, maybe while the task is being requeued
  fi
}

tasks=0
while :; do
  for f in *.available; do
    [ -e "$f" ] || continue
    task=${f%.available}
    at=$(date +%s%N)
    mv "$f" "$task.claimed$suffix" 2>/dev/null || continue
    note claim "$at"
    heartbeat
    if work && verify; then
      note done "$(date +%s%N)"
      rm -f "$task.claimed$suffix" "$task.lock"
    else
      note lost "$(date +%s%N)"
    fi
  done
  sleep 0.2
done
