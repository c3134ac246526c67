//! Which VIPs to announce: a pure function of polls, configuration and time.
