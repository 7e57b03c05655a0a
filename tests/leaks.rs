//! x

fn main(){}
