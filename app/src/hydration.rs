//! Loads the browser's half after the first paint, so that its download does not delay the text of the page. In a tab that is not
//! shown there is no paint to wait for.

use leptos::config::LeptosOptions;
use leptos::prelude::*;

const LOAD: &str = "(pkg=>{const load=()=>{const wasm=fetch(`${pkg}_bg.wasm`);\
    import(`${pkg}.js`).then(half=>half.default({module_or_path:wasm}).then(()=>half.hydrate()))};\
    document.hidden?load():requestAnimationFrame(()=>setTimeout(load))})";

/// A script of the document's head. Rendered on the server only.
#[component]
pub fn Hydration(options: LeptosOptions) -> impl IntoView {
    let pkg = format!("/{}/{}", options.site_pkg_dir, options.output_name);
    view! { <script type="module" nonce=leptos::nonce::use_nonce() inner_html=format!("{LOAD}({pkg:?})")></script> }
}
