# shellcheck shell=bash
# The certificate authorities of the tests, for scripts/test.

# with_one_authority COMMAND…: runs it with the first of the system's authorities alone. Each HTTP client reads all of them when it is
# built, and the tests build thousands, none of which leaves the machine.
with_one_authority() {
  local all=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt} folder=${CARGO_TARGET_DIR:-$ROOT/target} one
  if [[ ! -r $all ]]; then
    "$@"
    return
  fi
  mkdir -p "$folder"
  one=$(cd "$folder" && pwd)/one-authority.pem
  # Another run may be reading it.
  sed '/END CERTIFICATE/q' "$all" >"$one.$$"
  mv -f "$one.$$" "$one"
  SSL_CERT_FILE=$one SSL_CERT_DIR='' "$@"
}
