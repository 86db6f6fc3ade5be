//! stub
use super::*; use crate::runbook::Manifests;
#[derive(Clone,Debug)] pub struct Seen;
pub async fn observe(_t:&Manifests,_l:&Look<'_>)->Seen{Seen}
pub fn decide(_x:&Step,_t:&Manifests,_s:&Seen,_w:&World<'_>)->Decision{Decision::settled("")}
pub fn rights(_t:&Manifests)->Vec<Access>{vec![]}
pub async fn run(_t:&Manifests,_r:&Run<'_>)->Result<(),Stop>{Ok(())}
