//! The command line: types only. Their doc comments are the help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Plan and apply the removal of a Kubernetes API version.
///
/// A runbook declares the steps and what each needs. `plan` compares the live cluster with the
/// expected end state and writes nothing; `apply` does what is left, asking where a person must
/// decide; a second `plan` says `No changes`.
#[derive(Debug, Parser)]
#[command(name = "sbx", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// When to colour.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read a runbook and report every problem with it; no cluster is asked.
    Check(RunbookArgs),
    /// Print the steps and what each needs.
    Graph(GraphArgs),
    /// Compare the live cluster with the runbook's end state; writes nothing, ever.
    Plan(PlanArgs),
    /// Plan, ask, do, report.
    Apply(ApplyArgs),
    /// Look at the live cluster for versions that are on their way out, and draft a runbook.
    Init(InitArgs),
    /// Put what plan and rehearse need of the live cluster into one file, secrets left out.
    Snapshot(SnapshotArgs),
    /// Play the whole upgrade on an API server held in memory: plan, apply, plan again.
    Rehearse(RehearseArgs),
    /// Print the smallest `ClusterRole` and Roles for plan and for apply, as YAML; no cluster is asked.
    Rbac(RbacArgs),
    /// Print the JSON Schema of a runbook, for editors.
    Schema,
    /// Print completions for a shell.
    Completions(CompletionsArgs),
}

/// Which runbook.
#[derive(Debug, Args)]
pub struct RunbookArgs {
    /// The runbook. May be left out when `runbooks/` holds exactly one.
    pub runbook: Option<PathBuf>,
}

/// Which cluster.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// The kubeconfig file. Default: as kubectl does, `KUBECONFIG` or `~/.kube/config`.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context that must be the runbook's; another one is refused.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
}

/// `sbx graph`.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// The runbook. May be left out when `runbooks/` holds exactly one.
    pub runbook: Option<PathBuf>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: GraphFormat,
}

/// How to print the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Indented text.
    #[default]
    Tree,
    /// Graphviz.
    Dot,
    /// Mermaid, which GitHub draws.
    Mermaid,
}

/// `sbx plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The runbook. May be left out when `runbooks/` holds exactly one.
    pub runbook: Option<PathBuf>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: PlanFormat,
    /// Write the plan to this file, as JSON, beside printing it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Plan from this snapshot instead of the cluster, which is not asked.
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// Exit 2 when something is to do or to wait for.
    #[arg(long)]
    pub detailed_exitcode: bool,
}

/// How to print a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For the terminal.
    #[default]
    Text,
    /// For a pull request comment.
    Markdown,
    /// For programs.
    Json,
}

/// `sbx apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The runbook. May be left out when `runbooks/` holds exactly one.
    pub runbook: Option<PathBuf>,
    /// Run this step and what it needs, nothing later.
    #[arg(long, value_name = "STEP")]
    pub to: Option<String>,
    /// Approve the ordinary steps; never a point of no return or a `confirm`.
    #[arg(long)]
    pub yes: bool,
    /// Approve a point of no return or a `confirm` by its phrase; may be repeated.
    #[arg(long, value_name = "STEP@CONTEXT")]
    pub approve: Vec<String>,
}

/// `sbx init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Draft for this CRD; may be repeated. Default: every CRD whose `storedVersions` lists more than its storage
    /// version.
    #[arg(long, value_name = "NAME")]
    pub crd: Vec<String>,
    /// Write the runbook to this new file. Default: print it.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `sbx snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// The runbook. May be left out when `runbooks/` holds exactly one.
    pub runbook: Option<PathBuf>,
    /// The file to write, for its owner alone; what was there is replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// `sbx rbac`.
#[derive(Debug, Args)]
pub struct RbacArgs {
    /// The runbook. May be left out when `runbooks/` holds exactly one.
    pub runbook: Option<PathBuf>,
    /// For which of the two. Default: both.
    #[arg(long = "for", value_enum, value_name = "COMMAND")]
    pub purpose: Option<RbacPurpose>,
}

/// Which command a role is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RbacPurpose {
    /// `sbx plan`.
    Plan,
    /// `sbx apply`.
    Apply,
}

/// `sbx completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `sbx rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// The runbook. May be left out when `runbooks/` holds exactly one.
    pub runbook: Option<PathBuf>,
    /// Rehearse on a copy of a real cluster, taken by `sbx snapshot`. Default: a built-in one, for
    /// the shipped runbook.
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// Answer the questions yourself; otherwise the rehearsal answers and says so.
    #[arg(long)]
    pub interactive: bool,
    /// Let this step go wrong once: see what a failure looks like and how the rerun goes on.
    #[arg(long, value_name = "STEP")]
    pub fail: Option<String>,
}
