//! The pages of docs/, embedded, in the order in which docs/README.md names them.

use rust_embed::Embed;

use super::markdown;

#[derive(Embed)]
#[folder = "../docs"]
struct Pages;

/// The first page.
pub(super) const INDEX: &str = "README";

pub(super) struct Guide {
    /// `access`, `backends-redis`.
    pub(super) name: String,
    pub(super) path: String,
    /// Its first heading.
    pub(super) title: String,
    /// Title in the index.
    pub(super) index_title: String,
    pub(super) html: String,
}

pub(super) fn all() -> Vec<Guide> {
    let text = |file: &str| {
        let bytes = Pages::get(file)?.data;
        String::from_utf8(bytes.into_owned()).ok()
    };
    let index = text("README.md").unwrap_or_default();
    let place = |file: &str| index.find(&format!("({file}")).unwrap_or(usize::MAX);
    let mut files: Vec<String> = Pages::iter().map(|file| file.to_string()).collect();
    files.retain(|file| file.ends_with(".md"));
    files.sort_by_key(|file| (place(file), file.clone()));
    let guides = files
        .iter()
        .filter_map(|file| text(file).map(|text| read(file, &text, &index)));
    guides.collect()
}

fn read(file: &str, text: &str, index: &str) -> Guide {
    let name = name(file);
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let title = first.trim_start_matches('#').trim().replace('`', "");
    let before = index
        .split(&format!("]({file})"))
        .next()
        .filter(|before| before.len() < index.len());
    let index_title = before.and_then(|before| before.rsplit('[').next());
    Guide {
        path: path(&name),
        index_title: index_title.unwrap_or(&title).to_owned(),
        title,
        html: markdown::html(rest, folder),
        name,
    }
}

/// The name of a file as a part of an address.
pub(super) fn name(file: &str) -> String {
    file.trim_end_matches(".md").replace('/', "-")
}

pub(super) fn path(name: &str) -> String {
    match name {
        INDEX => "/docs".to_owned(),
        super::ALERTS => "/docs/alerts".to_owned(),
        // `/docs/alerts` is the address of the runbooks.
        "alerts" => "/docs/about-alerts".to_owned(),
        name => format!("/docs/{name}"),
    }
}
