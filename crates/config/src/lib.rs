//! Files in, resolved model out; every error knows its place in the file.
