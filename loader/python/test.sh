#!/usr/bin/env bash
# Runs the tests of the Python package that need no GPU.
#
#   loader/python/test.sh [--install] [--torch] [--sources] [--porting] [arguments for pytest]
# The extension is built in build/dev (preset dev) and tested from there; the environment, build/python-test,
# sees the packages of the Python it is made of, and gets nanobind, mypy and pytest-xdist (and pytest, numpy,
# pillow where they are missing) from pip's index.
# As many processes as tools/build-jobs says run the tests, each one a file at a time; then one process runs
# those with the mark `alone`, which measure time. -n 0: one process for all, for a debugger or to see what
# tests print.
# --install: `pip install ./loader/python` instead, as a user would; takes minutes longer.
# --torch: PyTorch, torchvision, Lightning, Accelerate, transformers and JAX too (some GB), where the
# environment has none; without them the tests that need them are skipped.
# --sources: the packages of docs/sources.md and Dask too, likewise.
# --porting: those of docs/porting.md, with --torch: timm, WebDataset and DALI. FFCV is not among them: pip
# compiles it where libopencv-dev is installed.
# SHARD_PYTHON=...: the Python to use (default: /usr/bin/python3, else python3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

install='' packages=()
while :; do
  case ${1:-} in
    --install) install=1 ;;
    --torch) packages+=('torch>=2.6,<3' torchvision 'lightning>=2.5,<3' 'accelerate>=1,<2' 'transformers>=5,<6' 'jax>=0.5,<1') ;;
    --sources) packages+=(dask distributed 'ray[default]' pyspark datasets pyarrow webdataset lmdb h5py zarr tfrecord) ;;
    --porting) packages+=('timm>=1,<2' webdataset nvidia-dali-cuda120) ;;
    *) break ;;
  esac
  shift
done
python=${SHARD_PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=$(command -v "$python" || command -v python3)
venv=build/python-test
[ -x $venv/bin/python ] || "$python" -m venv --system-site-packages $venv
pip() { $venv/bin/pip --quiet --disable-pip-version-check "$@"; }
pip install numpy 'pytest>=7' 'pytest-xdist>=3' 'nanobind>=2.4' mypy pillow "${packages[@]}" || {
  echo "loader/python/test.sh: pip cannot install nanobind: is the package index out of reach?" >&2
  exit 1
}
jobs=$(tools/build-jobs)
if [ -n "$install" ]; then
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs pip install ./loader/python
else
  read -ra flags <<<"${SHARD_CMAKE_FLAGS:-}" # more arguments for cmake
  # CMake keeps what it found of an earlier Python: -U.
  cmake --preset dev --log-level=WARNING -U '_Python_*' -DSHARD_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$PWD/$venv/bin/python" ${flags[@]+"${flags[@]}"}
  cmake --build --preset dev -j "$jobs" --target _core shardloader_modules shardloader_stub
  PYTHONPATH=$PWD/build/dev/python${PYTHONPATH:+:$PYTHONPATH}
  export PYTHONPATH
fi
cd loader/python
tests() { ../../$venv/bin/python -m pytest -p no:cacheprovider "$@"; }
code=0
tests -m "not gpu and not alone" -n "$jobs" --dist loadfile "$@" || code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 5 ] || exit "$code" # 5: the arguments name none of these
tests -m "not gpu and alone" -n 0 "$@" || [ "$((code + $?))" -eq 5 ]
