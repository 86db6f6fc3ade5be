//! Who signs in to the control plane of the tests, and the context they use.

/// Who may sign in, and the groups of each. `cluster` stands for whoever set the cluster up long ago: its requests
/// are never mistaken for those of `admin`, the person who runs `sbx`.
pub const USERS: &[(&str, &str)] = &[
    ("admin", "system:masters"),
    ("cluster", "system:masters"),
    ("argocd", "system:masters"),
    ("controller", "system:masters"),
    ("flickerd", "system:masters"),
    ("garrison", "system:masters"),
    ("reader", "readers"),
    ("operator", "operators"),
    ("nobody", "strangers"),
];

/// The context that the shipped runbook names.
pub const CONTEXT: &str = "admin@pitower";
