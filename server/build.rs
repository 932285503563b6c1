//! Makes sure that the folder of the browser's half exists before it is embedded, empty or not.

#[expect(
    clippy::disallowed_methods,
    reason = "cargo names the level of optimization in the environment"
)]
fn main() -> std::io::Result<()> {
    // Without the folder, debug builds would look for it under a path that never matches.
    std::fs::create_dir_all("../target/site")?;
    println!("cargo:rerun-if-changed=build.rs");
    // Builds that read the site from disk are not rebuilt for a changed one: of the profiles only release embeds it.
    if std::env::var("OPT_LEVEL").is_ok_and(|level| level == "3") {
        println!("cargo:rerun-if-changed=../target/site");
    }
    Ok(())
}
