//! Name tree: where the locks are. Each node is a link; the selected one is open.

use domain::escape::visible;
use domain::format;
use domain::name_tree::{PrefixChild, PrefixNode};
use leptos::prelude::*;

use super::url_state::Address;
use crate::components::state_badge::{Shape, hue};

/// Children shown per node: the most severe and largest, in name order.
const SHOWN_MAX: usize = 24;

/// One line of the tree with its depth.
#[derive(Debug, Clone, PartialEq)]
enum Line {
    Node {
        depth: usize,
        child: PrefixChild,
        open: bool,
        current: bool,
        near: bool,
    },
    More {
        depth: usize,
        segments: u64,
        /// There are further segments, of an unknown number.
        is_cut: bool,
        locks: u64,
    },
}

impl Line {
    /// The element of a prefix stays that prefix's: a link never changes its target under the
    /// pointer.
    fn key(&self) -> String {
        match self {
            Self::Node { child, .. } => child.prefix.clone(),
            Self::More { depth, .. } => format!("\0more {depth}"),
        }
    }
}

#[component]
pub fn Tree(
    /// From the root to the selected prefix.
    nodes: Signal<Vec<PrefixNode>>,
    address: Memo<Address>,
) -> impl IntoView {
    let total = move || nodes.with(|nodes| nodes.first().map_or(0, |root| root.total));
    let all = move || {
        address
            .with(|address| address.first("prefix").is_empty())
            .then_some("true")
    };
    let lines = move || {
        let chosen = address.with(|address| address.first("prefix").to_owned());
        nodes.with(|nodes| lines(nodes, &chosen))
    };
    view! {
        <nav class="tree" aria-label="name segments">
            <header class="small ink3" aria-hidden="true"><span>"segment"</span><span>"locks"</span></header>
            <ol>
                <li class="near">
                    <a href=move || address.get().with("prefix", "").href() aria-current=all>
                        <span class="tn">"All resources"</span>
                        <span class="tc">{move || format::count(total())}</span>
                    </a>
                </li>
                <For each=lines key=Line::key children=move |line| {
                    let key = line.key();
                    let line = Memo::new(move |_| {
                        lines().into_iter().find(|other| other.key() == key).unwrap_or_else(|| line.clone())
                    });
                    move || view! { <TreeLine line=line.get() address/> }
                }/>
            </ol>
        </nav>
    }
}

#[component]
fn TreeLine(line: Line, address: Memo<Address>) -> impl IntoView {
    match line {
        Line::More {
            depth,
            segments,
            is_cut,
            locks,
        } => view! {
            <li class=format!("more d{}", depth.min(3))>
                <span class="ink3 tl">
                    <span class="tn">{more_text(segments, is_cut)}</span>
                    <span class="tc">{format::count(locks)}</span>
                </span>
            </li>
        }
        .into_any(),
        Line::Node {
            depth,
            child,
            open,
            current,
            near,
        } => {
            let href = {
                let prefix = child.prefix.clone();
                move || address.get().with("prefix", &prefix).href()
            };
            let class = format!("mono d{}{}", depth.min(3), if near { " near" } else { "" });
            let badge = child.worst.needs_attention() || child.worst == domain::state::LockState::Stale;
            let badge = badge.then(|| {
                view! {
                    <span class=format!("tb {}", hue(child.worst.severity())) title=child.worst.label()>
                        <Shape name=child.worst.as_str()/><span class="sr">{child.worst.label()}</span>
                    </span>
                }
                .into_any()
            });
            let chevron = (!child.is_leaf || child.locks > 1).then(|| {
                view! { <span class="tw"><Shape name=if open { "chevd" } else { "chev" }/></span> }.into_any()
            });
            view! {
                <li class=class>
                    <a href=href aria-current=current.then_some("true") title=visible(&child.prefix).into_owned()>
                        {chevron}
                        <span class="tn"><bdi>{visible(&child.segment).into_owned()}</bdi></span>
                        {badge}
                        <span class="tc">{format::count(child.locks)}</span>
                    </a>
                </li>
            }
            .into_any()
        }
    }
}

fn more_text(segments: u64, is_cut: bool) -> String {
    match (segments, is_cut) {
        (0, _) => "more".to_owned(),
        (_, true) => format!("over {} more", format::count(segments)),
        (_, false) => format!("{} more", format::count(segments)),
    }
}

fn lines(nodes: &[PrefixNode], chosen: &str) -> Vec<Line> {
    let mut out = Vec::new();
    if let Some(root) = nodes.first() {
        grow(root, &nodes[1..], chosen, 0, &mut out);
    }
    out
}

/// The children of `node`, and recursively those of the selected one.
fn grow(node: &PrefixNode, deeper: &[PrefixNode], chosen: &str, depth: usize, out: &mut Vec<Line>) {
    let (shown, segments, locks) = choose(node, chosen);
    for child in shown {
        let below = deeper.first().filter(|next| next.prefix == child.prefix);
        out.push(Line::Node {
            depth,
            open: below.is_some(),
            current: child.prefix == chosen,
            near: below.is_some() || deeper.is_empty(),
            child: child.clone(),
        });
        if let Some(below) = below {
            grow(below, &deeper[1..], chosen, depth + 1, out);
        }
    }
    let is_cut = node.more_locks > 0;
    if segments > 0 || is_cut {
        out.push(Line::More {
            depth,
            segments,
            is_cut,
            locks,
        });
    }
}

fn choose<'a>(node: &'a PrefixNode, chosen: &str) -> (Vec<&'a PrefixChild>, u64, u64) {
    let mut ranked: Vec<(usize, &PrefixChild)> = node.children.iter().enumerate().collect();
    ranked.sort_by_key(|(_, child)| {
        (
            !chosen.starts_with(child.prefix.as_str()),
            child.worst,
            std::cmp::Reverse(child.locks),
        )
    });
    let omitted = ranked.split_off(ranked.len().min(SHOWN_MAX));
    // Severity selects the nodes, the name orders them: no node moves away under a pointer.
    ranked.sort_unstable_by_key(|(place, _)| *place);
    let locks: u64 = omitted.iter().map(|(_, child)| child.locks).sum();
    let segments = u64::try_from(omitted.len()).unwrap_or(0);
    (
        ranked.into_iter().map(|(_, child)| child).collect(),
        segments,
        locks + node.more_locks,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_segments_are_counted_only_if_all_are_known() {
        assert_eq!(more_text(976, false), "976 more");
        assert_eq!(more_text(976, true), "over 976 more");
        assert_eq!(more_text(0, true), "more");
    }
}
