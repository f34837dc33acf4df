#!/usr/bin/env bash
# Conversion beside pure decoding, in turn, of samples of any size and of one size:
#
#   bench/scripts/convert_sizes.sh SHARDBENCH IMAGES OUT [COUNT] [REPEAT]
#
# OUT: a folder in memory (/dev/shm/x) or on a disk; it needs room for COUNT samples (0.7 MB each for
# photographs of 500x375) and is left as it was. COUNT: images, by default 24,000; files are repeated.
# Writes OUT-NAME.json for each case, and prints images/s of both and their quotient.
set -euo pipefail

if [ $# -lt 3 ]; then
  sed -n '2,8p' "$0" >&2
  exit 2
fi
shardbench=$1 images=$2 out=$3 count=${4:-24000} repeat=${5:-3}

run() {
  local name=$1
  shift
  "$shardbench" convert "$images" --out "$out" --count "$count" --repeat "$repeat" \
    --json "$out-$name.json" "$@" >/dev/null 2>&1 || echo "$name: exit code $?"
  python3 - "$name" "$out-$name.json" <<'PY'
import json
import sys

name, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    one = json.load(file)["cases"][-1]
rates = [one[what]["images_per_second"]["median"] for what in ("decode", "convert")]
print(
    f"{name:16} {one['jobs']:3} threads: decoding {rates[0]:8.0f} images/s, converting {rates[1]:8.0f}, "
    f"{one['ratio']['median']:.3f} ({one['ratio']['min']:.3f} to {one['ratio']['max']:.3f})",
    flush=True,
)
PY
}

run original-none --size original --codec none
run original-packed --size original --codec packed
run train-none --preset train --codec none
run train-packed --preset train --codec packed
run eval-none --preset eval
