# shellcheck shell=bash
# The two dependency graphs and their checks, for scripts/check and scripts/test. They are never built together: the server build has
# app/ssr, the browser build app/hydrate, and no command uses --all-features.

# shellcheck disable=SC2034 # read by the scripts that source this
SERVER_GRAPH=(--workspace --exclude frontend --exclude bindings --features app/ssr)
BROWSER_GRAPH=(-p frontend -p app --features app/hydrate)

# A clean clone is tested with exactly the versions of Cargo.lock; in a changed tree cargo may update it.
LOCKED=()
[[ ${CI:-} != true ]] || LOCKED=(--locked)

# The browser build must not contain server crates.
SERVER_ONLY='tokio|mio|hyper|axum|sqlx[a-z-]*|redis|etcd-client|tonic|rustls|ring|reqwest|getrandom'

formatted() { cargo fmt --check || die 'not formatted' 'make fmt'; }

# `-D warnings`, as cargo passes it to clippy's driver.
DENY_WARNINGS='-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__'

# linted COMMAND…: cargo lints the crates of the workspace while it compiles them, as `cargo clippy -- -D warnings` does with a compilation
# of its own. Crates of the registry are compiled as always. Not for what is shipped: clippy's driver omits optimizations.
linted() {
  RUSTC_WORKSPACE_WRAPPER=$ROOT/scripts/lib/clippy-once CLIPPY_ARGS=$DENY_WARNINGS "$@"
}

lint_server() {
  cargo clippy "${LOCKED[@]}" "${SERVER_GRAPH[@]}" --all-targets -- -D warnings
}

# lint_browser: checks the browser build, for the inner loop. Debian's compiler has another version, so its clippy is not used: native
# lints, then a check for wasm32.
lint_browser() {
  local graph=("${LOCKED[@]}" "${BROWSER_GRAPH[@]}")
  if [[ $("$ROOT/scripts/wasm-cargo" --way) == own ]]; then
    "$ROOT/scripts/wasm-cargo" clippy "${graph[@]}" -- -D warnings
  else
    cargo clippy "${graph[@]}" -- -D warnings && "$ROOT/scripts/wasm-cargo" check "${graph[@]}"
  fi
}

# lint_site: the same after scripts/site, with what it has compiled: the dependencies, or with Debian's compiler the macros. Needs
# scripts/lib/wasm.sh.
lint_site() {
  linted bindings_tool || return
  if [[ $("$ROOT/scripts/wasm-cargo" --way) == own ]]; then
    RUSTC_WORKSPACE_WRAPPER=$ROOT/scripts/lib/clippy-metadata CLIPPY_ARGS=$DENY_WARNINGS \
      "$ROOT/scripts/wasm-cargo" build "${LOCKED[@]}" -p frontend --profile wasm
  else
    cargo clippy "${LOCKED[@]}" "${BROWSER_GRAPH[@]}" --profile wasm -- -D warnings
  fi
}

browser_holds_no_server() {
  local found
  found=$(cargo tree "${LOCKED[@]}" -p frontend --target wasm32-unknown-unknown -e normal,no-proc-macro --prefix none |
    grep -E "^($SERVER_ONLY) v" | sort -u || true)
  [[ -z $found ]] || die "the browser build depends on: ${found//$'\n'/, }" \
    'cargo tree -p frontend --target wasm32-unknown-unknown -e normal,no-proc-macro -i NAME'
}
