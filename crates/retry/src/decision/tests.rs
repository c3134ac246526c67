//! Tables of the retry rules.
