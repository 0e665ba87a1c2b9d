//! The sink and the record.
