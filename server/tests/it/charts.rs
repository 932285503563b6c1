//! Timelines, hold times and the fencing rejections as pages: complete without a script, cut to what the viewer may see.

mod chart_pages;
mod fencing_page;
mod lock;
mod released_lock;
