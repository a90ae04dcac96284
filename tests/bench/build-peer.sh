#!/usr/bin/env bash
# Builds the peer for speed comparisons: llama.cpp from the source package of llama-cpp-python, native and
# optimised, and its sides of the measurement (peer-llama, peer-mtmd).  About 8 to 15 minutes on two cores.
# Usage: tests/bench/build-peer.sh [FOLDER]    (default: the cache folder of the user)
# Never part of ./test.sh.
set -euo pipefail

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/keepsake/peer}
mkdir -p "$dir"
archive="$dir/llama_cpp_python-$version.tar.gz"

for tool in cmake g++ python3 tar sha256sum; do
  command -v "$tool" >/dev/null || { echo "build-peer: install $tool first" >&2; exit 2; }
done
if [ ! -f "$archive" ]; then
  # pip asks the package for its metadata: with the build tools in a place of their own, none need be installed.
  python3 -m pip download --no-deps --no-binary llama-cpp-python \
    --timeout 30 --retries 2 -d "$dir" "llama-cpp-python==$version" ||
    [ -f "$archive" ] || { echo "build-peer: the source package could not be fetched; check the network" >&2; exit 1; }
fi
echo "$sha256  $archive" | sha256sum --check --quiet ||
  { echo "build-peer: $archive is not the expected file; delete it and try again" >&2; exit 1; }
src="$dir/src"
if [ ! -d "$src/vendor/llama.cpp" ]; then
  mkdir -p "$src"
  tar xzf "$archive" -C "$src" --strip-components=1
fi
cmake -S "$src/vendor/llama.cpp" -B "$dir/build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
  -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF \
  -DLLAMA_BUILD_MTMD=ON -DBUILD_SHARED_LIBS=ON >/dev/null
cmake --build "$dir/build" --target llama mtmd -j"$(nproc)"
cc -O2 -o "$dir/peer-llama" "$here/peer-llama.c" -I"$here/../.." \
  -I"$src/vendor/llama.cpp/include" -I"$src/vendor/llama.cpp/ggml/include" \
  -L"$dir/build/bin" -Wl,-rpath,"$dir/build/bin" -lllama -lggml -lggml-base
g++ -std=c++17 -O2 -o "$dir/peer-mtmd" "$here/peer-mtmd.cpp" -I"$here/../.." -I"$src/vendor/llama.cpp/tools/mtmd" \
  -I"$src/vendor/llama.cpp/include" -I"$src/vendor/llama.cpp/ggml/include" \
  -L"$dir/build/bin" -Wl,-rpath,"$dir/build/bin" -lmtmd -lllama -lggml -lggml-base
echo "peer ready: $dir/peer-llama and $dir/peer-mtmd"
