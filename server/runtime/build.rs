//! Recompiles the embedded migrations when a file is added.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
