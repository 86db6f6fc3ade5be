//! stub
use super::*; use crate::runbook::Writers;
#[derive(Clone,Debug)] pub struct Seen{pub mutations:Option<u64>}
pub async fn observe(_t:&Writers,_l:&Look<'_>)->Seen{Seen{mutations:None}}
pub fn decide(_t:&Writers,_s:&Seen,_w:&World<'_>)->Decision{Decision::settled("")}
