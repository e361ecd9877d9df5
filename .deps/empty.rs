// Cargo insists that a package has a target. This one is empty on purpose: see Cargo.toml.
