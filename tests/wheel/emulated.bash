#!/usr/bin/env bash
# Wheels for another machine than this one, in a bare Debian of that machine, whose programs the emulator runs
# (qemu-user). Part of tools/test-wheel, which has what is used: step, seconds_of, everything_in, numpy_for.
# shellcheck disable=SC2154 # root, cache and work are tools/test-wheel's

# A Debian that has a Python for this wheel.
suite_for() { # WHEEL
  case $1 in
    *-cp311-*) echo bookworm ;;
    *-cp312-abi3-*) echo trixie ;; # Python 3.13
  esac
}

# The bare system: its packages are unpacked and not configured, because none of their programs can start by
# itself. The emulator is called with each program, so nothing has to be registered with this system's kernel
# (binfmt_misc). From the copy that the first run keeps.
emulated_system() { # MACHINE SUITE
  local architecture=$1 tar file why=''
  if [ "$1" = aarch64 ]; then architecture=arm64; fi
  tar=$cache/$2-$architecture.tar
  [ "$(id -u)" -eq 0 ] || why="not root"
  command -v debootstrap >/dev/null || why="no debootstrap (tools/install-deps wheel)"
  command -v "qemu-$1-static" >/dev/null || why="no qemu-$1-static (tools/install-deps wheel)"
  if [ -z "$why" ] && [ ! -e "$tar" ]; then
    rm -rf "$work/debian"
    debootstrap --foreign --arch="$architecture" --variant=minbase --include=python3,python3-venv "$2" "$work/debian" >"$work/log" 2>&1 ||
      why="debootstrap: $(tail -n 1 "$work/log")"
    if [ -z "$why" ]; then
      for file in "$work"/debian/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$file" | tar -C "$work/debian" --keep-directory-symlink -xf -
      done
      # pip of trixie reads it; ca-certificates makes it when it is configured.
      mkdir -p "$work/debian/etc/ssl/certs"
      find "$work/debian/usr/share/ca-certificates" -name '*.crt' -exec cat {} + >"$work/debian/etc/ssl/certs/ca-certificates.crt" 2>/dev/null || true
      rm -rf "$work"/debian/{debootstrap,proc,var/cache/apt/archives/*.deb} # proc may be a link to this system's
      mkdir "$work/debian/proc"
      tar -C "$work/debian" -cf "$tar.new" . && mv "$tar.new" "$tar"
    fi
    rm -rf --one-file-system "$work/debian"
  fi
  if [ -z "$why" ]; then
    chroot_folder=$work/bare
    emulator=/usr/bin/qemu-$1-static
    mkdir -p "$chroot_folder"
    tar -C "$chroot_folder" -xf "$tar"
    cp "$(command -v "qemu-$1-static")" "$chroot_folder$emulator"
    mount -t proc proc "$chroot_folder/proc" 2>/dev/null || true
    emulated /usr/bin/true 2>"$work/log" || why="no program of it runs here: $(tail -n 1 "$work/log")"
  fi
  if [ -n "$why" ]; then
    echo "SKIPPED: bare Debian ($2, $1): $why"
    return 1
  fi
}
# Without network but the loopback interface. PROGRAM is a path from the root on.
emulated() { # [--userspec=USER] PROGRAM ARGUMENTS ...; $cpu: qemu's name of a CPU
  local user=()
  if [[ $1 == --userspec=* ]]; then user=("$1") && shift; fi
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 "QEMU_CPU=${cpu:-max}" "SHARD_TEST_EMULATOR=$emulator" \
    unshare -n sh -c 'ip link set lo up; exec chroot "$@"' sh "${user[@]}" "$chroot_folder" "$emulator" "$@"
}
emulated_as_user() { emulated --userspec=65534:65534 "$@"; }

# What is converted in how many ways: NAME FOLDER OPTIONS.
conversions() {
  cat <<'END'
train photos --preset train
eval photos --preset eval
any photos --size original
fast photos --size 100 --fast-decode
jpeg photos --size 160 --codec jpeg --quality 90
packed photos --preset eval --codec packed
zstd photos --size 128 --codec zstd
bicubic photos --size 90 --filter bicubic --dtype bf16
lanczos photos --squash 70x300 --filter lanczos --dtype f32
box photos --longest 77 --filter box
formats images --size original
formats-f32 images --preset eval --filter lanczos --dtype f32
END
}
convert_all() { # FOLDER_OF_PROGRAMS WORK [COMMAND ...]: the programs run by the command
  local programs=$1 work=$2 name folder options
  shift 2
  "$@" "$programs/shardbench" synth "$work/photos" --count 40 || return 1
  while read -r name folder options; do
    # shellcheck disable=SC2086 # are words
    "$@" "$programs/shardify" "$work/$folder" "$work/$name" $options </dev/null || return 1
    "$@" "$programs/shardctl" verify "$work/$name" </dev/null || return 1
  done < <(conversions)
}

# CPUs whose vectors differ: NEON alone, and with SVE.
cpus_of() { # MACHINE
  if [ "$1" = aarch64 ]; then echo cortex-a72 max; fi
}

# Data sets and batches have the same bytes as this machine's.
same_as_here() { # MACHINE WHEEL_HERE
  local name here=$work/here there=$chroot_folder/tmp/same differ='' version python cpu
  IFS=' ' read -r version python < <(pythons_for "$2")
  "$python" -m venv "$here/venv"
  "$here/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$(numpy_for "$version")"/*.whl "$2"
  cp -r tests/golden/images "$here/"
  convert_all "$here/venv/bin" "$here" env >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    return 1
  }
  (cd "$here" && venv/bin/python "$root/tests/wheel/batches.py" train any jpeg) >"$work/batches-here"
  : >"$work/differ"
  for cpu in $(cpus_of "$1"); do
    rm -rf "$there"
    mkdir -m 777 "$there"
    cp -r tests/golden/images "$there/"
    chmod -R a+rX "$there"
    convert_all /opt/venv/bin /tmp/same emulated_as_user >"$work/log" 2>&1 || {
      tail -n 5 "$work/log" >&2
      return 1
    }
    emulated_as_user /opt/venv/bin/python /wheels/batches.py /tmp/same/{train,any,jpeg} >"$work/batches"
    for name in photos $(conversions | cut -d ' ' -f 1); do
      diff -r "$here/$name" "$there/$name" >>"$work/differ" || differ+=" $cpu: $name"
    done
    differ+=$({ diff "$work/batches-here" "$work/batches" || true; } | sed -n "s/^< \([^ ]* [^ ]*\) .*/ $cpu: batches of \1/p" | paste -sd '')
  done
  if [ -n "$differ" ]; then
    echo "other bytes than on $(uname -m):$differ" >&2
    head -n 20 "$work/differ" >&2
    return 1
  fi
  echo "  the same bytes as on $(uname -m), with the CPUs $(cpus_of "$1"):" \
    "$(conversions | wc -l) data sets ($(du -ch "$here"/*/*.safetensors | tail -n 1 | cut -f 1)), $(wc -l <"$work/batches") ways to load"
  rm -rf "$here" "$there"
}

wheel_of_another_machine() { # MACHINE WHEEL WHEEL_HERE
  local suite seconds version pip
  suite=$(suite_for "$2")
  if [ -z "$suite" ]; then
    echo "SKIPPED: $(basename "$2"): no Debian has a Python for it"
    return
  fi
  emulated_system "$1" "$suite" || return 0
  version=$(emulated /usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  step "$(basename "$2") in a bare Debian ($suite, $1, Python $version), by $(basename "$emulator")"
  mkdir "$chroot_folder/wheels"
  cp "$2" "$(numpy_for "$version" "$1")"/*.whl "$chroot_folder/wheels/"
  cp tests/wheel/{installed,batches}.py "$chroot_folder/wheels/"
  emulated /usr/bin/python3 -m venv --without-pip /opt/venv
  pip=$(cd "$chroot_folder" && echo usr/share/python-wheels/pip-*.whl)
  pip() { emulated /opt/venv/bin/python "/$pip/pip" --disable-pip-version-check "$@"; }
  pip install --quiet --no-index --find-links /wheels numpy
  everything_in "$chroot_folder" >"$work/before"
  seconds=$(seconds_of pip install --no-index --find-links /wheels shardloader)
  echo "  pip install, numpy present: $seconds s"
  emulated_as_user /opt/venv/bin/python /wheels/installed.py /tmp/made
  if [ -n "$3" ]; then
    same_as_here "$1" "$3"
  else
    echo "  SKIPPED: comparing with what this machine makes: no wheel of it beside this one"
  fi
  pip uninstall --quiet -y shardloader
  everything_in "$chroot_folder" | diff "$work/before" - || {
    echo "left after pip uninstall: see above" >&2
    return 1
  }
  echo "  removed: nothing is left"
  leave_bare_system
}
