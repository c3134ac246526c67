//! Tests of the policies through the picker.
