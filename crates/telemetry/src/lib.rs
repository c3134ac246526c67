//! Names of metrics, logs, the journal.
