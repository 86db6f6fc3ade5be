//! `sbx graph`: the steps as a tree, for Graphviz or for Mermaid.

use super::select::select;
use crate::{
    cli::{GraphArgs, GraphFormat},
    error::Error,
    exit_code::ExitCode,
    render,
    terminal::Terminal,
};

pub(super) fn run(args: GraphArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, graph) = select(args.runbook)?;
    terminal.out(&match args.format {
        GraphFormat::Tree => render::graph::tree(&runbook, &graph),
        GraphFormat::Dot => render::graph::dot(&runbook, &graph),
        GraphFormat::Mermaid => render::graph::mermaid(&runbook, &graph),
    });
    Ok(ExitCode::Success)
}
