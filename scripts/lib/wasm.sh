# shellcheck shell=bash
# Compiler of the browser build: rustup's if it has the wasm32 standard library, else Debian's with a
# standard library built once into the cache.

WASM_TARGET=wasm32-unknown-unknown
DEBIAN_RUSTC=/usr/bin/rustc
DEBIAN_CARGO=/usr/bin/cargo
DEBIAN_LLD=/usr/bin/lld-22

has_std() { compgen -G "$1/libstd-*.rlib" >/dev/null; }

own_wasm_libdir() { rustc --print target-libdir --target "$WASM_TARGET" 2>/dev/null; }

# A standard library fits exactly one compiler, so its folder is named after it.
debian_sysroot() {
  local version
  version=$("$DEBIAN_RUSTC" -V 2>/dev/null) || return 1
  printf '%s/wasm-std/%s' "$CACHE" "${version//[^a-zA-Z0-9.]/-}"
}

debian_wasm_ready() {
  local sysroot
  [[ -x $DEBIAN_CARGO && -x $DEBIAN_LLD ]] && sysroot=$(debian_sysroot) &&
    has_std "$sysroot/lib/rustlib/$WASM_TARGET/lib"
}

# wasm_way: prints "own" or "debian", or fails when neither is ready.
# LEASEHOLD_WASM=own|debian selects one of them.
wasm_way() {
  if [[ ${LEASEHOLD_WASM:-own} == own ]] && has_std "$(own_wasm_libdir)"; then
    printf own
  elif [[ ${LEASEHOLD_WASM:-debian} == debian ]] && debian_wasm_ready; then
    printf debian
  else
    return 1
  fi
}

# Two compilers never share a target folder.
wasm_target_dir() {
  local suffix=''
  [[ $1 == debian ]] && suffix=-debian
  printf '%s/browser%s' "${CARGO_TARGET_DIR:-$ROOT/target}" "$suffix"
}

# wasm_cargo WAY ARGUMENT…: cargo for wasm32 in a separate target folder. The flags for Debian's compiler
# replace those of .cargo/config.toml, so they are repeated here.
wasm_cargo() {
  local way=$1 dir sysroot
  shift
  dir=$(wasm_target_dir "$way")
  if [[ $way == own ]]; then
    CARGO_BUILD_TARGET=$WASM_TARGET CARGO_TARGET_DIR=$dir cargo "$@"
    return
  fi
  sysroot=$(debian_sysroot)
  env -u RUSTFLAGS -u RUSTUP_TOOLCHAIN \
    RUSTC="$DEBIAN_RUSTC" CARGO_BUILD_TARGET="$WASM_TARGET" CARGO_TARGET_DIR="$dir" \
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$sysroot/bin/rust-lld" \
    CARGO_ENCODED_RUSTFLAGS="--cfg"$'\x1f'"erase_components"$'\x1f'"--sysroot"$'\x1f'"$sysroot" \
    "$DEBIAN_CARGO" "$@"
}

# bindings_tool: builds app/bindings for the machine that builds; without optimization, which would take longer than its run.
bindings_tool() { CARGO_TARGET_DIR=$(wasm_target_dir own) cargo build --locked -p bindings; }

bindings_program() { printf '%s/debug/bindings' "$(wasm_target_dir own)"; }
