//! Loads the wasm after the first paint, so that its download does not delay the text of the page. A hidden tab is never
//! painted: there the wasm is loaded at once.
//!
//! Until then the browser itself follows links and history. Back and forward within one document change only the address: the
//! page is then not the one that the server rendered, and hydrating it would fail. The script reloads the page instead.

use leptos::config::LeptosOptions;
use leptos::prelude::*;

const LOAD: &str = "(pkg=>{const url=()=>location.pathname+location.search,rendered=url(),load=async()=>{\
    const wasm=fetch(`${pkg}_bg.wasm`),half=await import(`${pkg}.js`);await half.default({module_or_path:wasm});\
    url()==rendered?half.hydrate():location.reload()};\
    addEventListener('DOMContentLoaded',()=>document.hidden?load():requestAnimationFrame(()=>setTimeout(load)))})";

/// A script of the document's head. Rendered on the server only.
#[component]
pub fn Hydration(options: LeptosOptions) -> impl IntoView {
    let pkg = format!("/{}/{}", options.site_pkg_dir, options.output_name);
    view! { <script nonce=leptos::nonce::use_nonce() inner_html=format!("{LOAD}({pkg:?})")></script> }
}
