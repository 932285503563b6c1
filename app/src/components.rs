//! Components shared by pages. One concept per file, with a style sheet of the same name.

pub mod age_bar;
pub mod backend_strip;
pub mod blocker_tree;
pub mod bottom_nav;
pub mod copy_button;
pub mod elapsed;
pub mod empty_state;
pub(crate) mod escape_html;
pub mod expiry_bar;
pub mod expiry_bar_large;
pub mod fact_list;
pub mod known_value;
pub mod legend;
pub mod live_bar;
pub mod load_boundary;
pub mod nav;
pub mod raw_html;
pub mod raw_record;
pub mod reactive;
pub mod resource_name;
pub mod search_box;
pub mod sparkline;
pub mod state_badge;
pub mod time;
pub mod title;
pub mod worklist;
