//! Parts that pages share. One concept per file, with a style sheet of the same name.

pub mod age;
pub mod age_bar;
pub mod backend_strip;
pub mod blocker_tree;
pub mod changing;
pub mod copy_button;
pub mod empty;
pub(crate) mod escape_html;
pub mod facts;
pub mod known_value;
pub mod legend;
pub mod live_bar;
pub mod load_boundary;
pub mod made;
pub mod nav;
pub mod raw_record;
pub mod resource_name;
pub mod runway;
pub mod runway_large;
pub mod search_box;
pub mod sparkline;
pub mod state_badge;
pub mod tabs;
pub mod time;
pub mod title;
pub mod worklist;
