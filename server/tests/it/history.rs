//! Lock history: recorded across restarts, by one of several servers, with gaps marked and expired rows deleted.

mod contention;
mod recorder;
mod recording;
mod restart;
mod rollups;
mod simulated_past;
mod waits;
mod writers;
