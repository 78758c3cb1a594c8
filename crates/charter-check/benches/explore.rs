//! How fast is the exploration?
fn main() {}
