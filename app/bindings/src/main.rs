//! Writes the JavaScript bindings of a compiled browser build: `bindings WASM FOLDER`.
//!
//! It is the part of wasm-bindgen's command line tool that scripts/site needs, in the version of Cargo.lock. The whole
//! tool would be compiled on each new machine, with its test runner and HTTP server, for longer than the rest of the
//! browser build.

use std::path::PathBuf;

use anyhow::Context as _;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (wasm, folder) = arguments
        .next()
        .zip(arguments.next())
        .context("usage: bindings WASM FOLDER")?;
    Bindgen::new()
        .web(true)?
        .typescript(false)
        .out_name("leasehold")
        .input_path(wasm)
        .generate(folder)
}
