//! x
pub mod throwaway;
