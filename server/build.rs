//! Makes sure that the folder of the browser's half exists before it is embedded, empty or not.

#[expect(
    clippy::disallowed_methods,
    reason = "cargo names the profile in the environment"
)]
fn main() -> std::io::Result<()> {
    // Without the folder, debug builds would look for it under a path that never matches.
    std::fs::create_dir_all("../target/site")?;
    println!("cargo:rerun-if-changed=build.rs");
    // Debug builds read the site from disk: a changed one rebuilds nothing.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo:rerun-if-changed=../target/site");
    }
    Ok(())
}
