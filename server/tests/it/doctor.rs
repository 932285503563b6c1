//! `leasehold doctor` on real servers: nothing wrong, then one thing wrong at a time, each found with its mend. And
//! `leasehold migrate`, which it sends people to.

mod healthy;
mod stage;
mod store;
mod watched;
