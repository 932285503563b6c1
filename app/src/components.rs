//! Parts that pages share. One concept per file, with a style sheet of the same name.

pub mod copy_button;
pub mod empty;
pub mod known_value;
pub mod legend;
pub mod live_bar;
pub mod load_boundary;
pub mod nav;
pub mod resource_name;
pub mod runway;
pub mod search_box;
pub mod state_badge;
pub mod tabs;
pub mod time;
