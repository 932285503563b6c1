//! `leasehold doctor` on real servers: nothing wrong, then one thing wrong at a time, each found with its mend. And
//! `leasehold migrate`, which it sends people to.

mod certificates;
mod healthy;
mod provider;
mod receivers;
mod stage;
mod store;
mod watched;
