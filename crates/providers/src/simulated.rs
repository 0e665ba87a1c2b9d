//! An engine that runs nothing and says so in every status: for tests, demos and scale runs.
