#!/usr/bin/env bash
# Installs the package into a virtual environment of its own (build/python-test) and runs its tests that need no GPU.
#
#   loader/python/test.sh [--torch] [arguments for pytest]
# --torch: PyTorch too (some GB), where the environment has none; without it the tests that need it are skipped.
# SHARD_PYTHON=...: the Python to use (default: python3). The package index is pip's; nothing else is touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

packages=(numpy 'pytest>=7')
if [ "${1:-}" = --torch ]; then
  packages+=(torch)
  shift
fi
venv=build/python-test
[ -x $venv/bin/python ] || "${SHARD_PYTHON:-python3}" -m venv $venv
$venv/bin/pip install --quiet --disable-pip-version-check "${packages[@]}"
CMAKE_BUILD_PARALLEL_LEVEL=$(tools/build-jobs) $venv/bin/pip install --quiet --disable-pip-version-check ./loader/python
cd loader/python
exec ../../$venv/bin/python -m pytest -p no:cacheprovider -m "not gpu" "$@"
