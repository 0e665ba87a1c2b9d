//! What people want to know, computed from API objects. Pure: no clock, no client; what is not given is not known.

pub(crate) mod advice;
pub(crate) mod chain;
pub(crate) mod cities;
pub(crate) mod city;
pub(crate) mod instance;
pub(crate) mod plan;
pub(crate) mod quota;
pub(crate) mod rollout;
pub(crate) mod workload;

#[cfg(test)]
pub(crate) mod fixtures;
