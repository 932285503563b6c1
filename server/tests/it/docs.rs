//! The documentation: what the console serves of it, and that its examples and files do what they say.

mod backup;
mod deploy;
mod dist;
mod pages;
mod proxies;
mod reference;
