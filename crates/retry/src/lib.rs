//! May a failed attempt be repeated on the next destination, and what does that cost.
