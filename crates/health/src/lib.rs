//! Who is healthy: schedule, active and passive policies, availability.
