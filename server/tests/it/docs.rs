//! The documentation: its pages in the console, and that its examples and files work as described.

mod backup;
mod deploy;
mod dist;
mod pages;
mod proxies;
mod reference;
mod setup;
