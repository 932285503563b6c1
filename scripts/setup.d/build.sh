# shellcheck shell=bash
# For `make build`: protoc for etcd-client, brotli for pre-compression, and for the browser build the
# wasm32 standard library and wasm-opt.

build_packages() {
  have cc || want_package gcc
  have cc || want_package libc6-dev
  have protoc || want_package protobuf-compiler
  # The well-known types are a recommendation of protoc, not a dependency.
  [[ -d /usr/include/google/protobuf || -d /usr/local/include/google/protobuf ]] || want_package libprotobuf-dev
  have wasm-opt || want_package binaryen
  have brotli || want_package brotli
  wasm_way >/dev/null || wasm_std_by_rustup || wasm_std_packages
}

build_tools() {
  wasm_way >/dev/null || wasm_std_by_debian
}

# Some networks block rustup's downloads: fail fast and quietly, then use Debian's compiler.
wasm_std_by_rustup() {
  [[ ${LEASEHOLD_WASM:-own} == own ]] && have rustup || return 1
  local start
  start=$(now_us)
  RUSTUP_MAX_RETRIES=0 timeout 60 rustup target add "$WASM_TARGET" >/dev/null 2>&1 </dev/null 9>&- || return 1
  wasm_way >/dev/null || return 1
  say "rustup target add $WASM_TARGET … $(seconds_since "$start") s"
}

wasm_std_packages() {
  [[ ${LEASEHOLD_WASM:-debian} == debian ]] ||
    die 'rustup could not add the wasm32 standard library' "rustup target add $WASM_TARGET"
  [[ -x $DEBIAN_LLD ]] || want_package lld-22
  [[ -x $DEBIAN_CARGO && -x $DEBIAN_RUSTC ]] || APT_NEEDED+=(rustc-web cargo-web)
  [[ -d /usr/lib/rustlib/src/rust/library ]] || want_package rust-web-src
}

wasm_std_by_debian() {
  quietly 'building the wasm32 standard library' "$ROOT/scripts/wasm-std" ||
    die 'the wasm32 standard library could not be built' "rustup target add $WASM_TARGET"
}
