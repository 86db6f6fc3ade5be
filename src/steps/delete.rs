//! stub
use super::*; use crate::runbook::Delete; use crate::object::*;
#[derive(Clone,Debug)] pub struct Target{pub resource:Resource,pub object:ObjectRef,pub uid:String}
#[derive(Clone,Debug)] pub struct Seen{pub targets:Vec<Target>}
pub async fn observe(_x:&Step,_t:&Delete,_l:&Look<'_>)->Seen{Seen{targets:vec![]}}
pub fn decide(_x:&Step,_t:&Delete,_s:&Seen,_w:&World<'_>)->Decision{Decision::settled("")}
pub fn rights(_t:&Delete)->Vec<Access>{vec![]}
pub async fn run(_x:&Step,_t:&Delete,_r:&Run<'_>)->Result<(),Stop>{Ok(())}
