//! stub
use super::*; use crate::runbook::Strip;
#[derive(Clone,Debug)] pub struct Seen{pub mutations:Option<u64>}
pub async fn observe(_t:&Strip,_l:&Look<'_>)->Seen{Seen{mutations:None}}
pub fn decide(_x:&Step,_t:&Strip,_s:&Seen,_w:&World<'_>)->Decision{Decision::settled("")}
pub fn rights(_t:&Strip,_r:&Runbook)->Vec<Access>{vec![]}
pub async fn run(_t:&Strip,_r:&Run<'_>)->Result<(),Stop>{Ok(())}
