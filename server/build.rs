//! Makes sure that the folder of the browser's half exists before it is embedded, empty or not.

fn main() -> std::io::Result<()> {
    // Without the folder, debug builds would look for it under a path that never matches.
    std::fs::create_dir_all("../target/site")?;
    println!("cargo:rerun-if-changed=../target/site");
    Ok(())
}
