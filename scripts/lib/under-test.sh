# shellcheck shell=bash
# Builds the programs for the browser tests, for scripts/e2e and scripts/screenshots. Sourced after common.sh and graph.sh.

# Exports LEASEHOLD_BIN and LEASEHOLD_GALLERY. Variables that are set already are kept; if both are set, nothing is built.
make_programs_under_test() {
  local folder=$ROOT/target
  scripts/setup build servers browser
  if [[ -z ${LEASEHOLD_BIN:-} || -z ${LEASEHOLD_GALLERY:-} ]]; then
    scripts/site
    # With the tests: the same features as for nextest, so nothing is compiled twice.
    cargo build "${LOCKED[@]}" "${SERVER_GRAPH[@]}" --bins --tests --examples
    [[ -z ${CARGO_TARGET_DIR:-} ]] || folder=$(cd "$CARGO_TARGET_DIR" && pwd)
  fi
  export LEASEHOLD_BIN=${LEASEHOLD_BIN:-$folder/debug/leasehold}
  export LEASEHOLD_GALLERY=${LEASEHOLD_GALLERY:-$folder/debug/examples/gallery}
  # As .cargo/config.toml does for the tests of Rust.
  export POSTGRES_TEMPLATES=$ROOT/target/templates
  [[ -f $ROOT/end2end/package.json ]] || die 'end2end/ holds no tests' 'git checkout end2end'
}
