//! The loader as a whole: layers, mistakes, and the documents that describe it.

mod access;
mod docs;
mod layers;
mod mistakes;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Config, ConfigErrors, FileSource, FlagSource, Loaded, Sources, read};

/// Sources of a test: a file's text, variables, flags.
fn sources(file: &str, variables: &[(&str, &str)]) -> Sources {
    Sources {
        file: Some(FileSource {
            path: PathBuf::from("leasehold.toml"),
            text: file.to_owned(),
        }),
        environment: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        flags: Vec::new(),
    }
}

fn load(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    Config::load(&sources(file, variables))
}

fn explain(file: &str, variables: &[(&str, &str)]) -> Loaded {
    read(&sources(file, variables))
}

fn listen_flag(value: &str) -> FlagSource {
    FlagSource {
        key: "listen",
        name: "--listen",
        value: value.to_owned(),
    }
}
