//! What tests of the whole system need: a stack of planes with levers to stop, start and cut off each part of it, and the stories that it has to
//! tell right.
//!
//! A story knows planes and the Kubernetes API, and nothing of what serves them: the same stories run on every engine. What a stack must
//! offer for that is [`Stack`]; [`Embedded`] is the one that runs in this process, [`real::RealStack`] the one on API servers elsewhere.
//!
//! Start reading at [`Stack`], then at any file of [`stories`].

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::missing_panics_doc, reason = "everything here fails by panicking")]

mod direct;
mod embedded;
pub mod faults;
pub mod objects;
pub mod real;
mod stack;
pub mod stories;
mod view;
mod wait;

pub use direct::Direct;
pub use embedded::Embedded;
pub use stack::{Place, Stack, Worker};
pub use view::View;
pub use wait::{DEADLINE, Pace, eventually, set_pace, stays};
