//! Properties of the body that are sent although they do not fit their schemas, because a rule says
//! `validate: lenient` of them.

use crate::spec::operation::request_body::BODY;
use crate::spec::operation::rules::PropertyStep;

/// The places of such properties.
#[derive(Default)]
pub(crate) struct LenientPlaces(Vec<Vec<PropertyStep>>);

impl LenientPlaces {
    pub(super) fn new(paths: Vec<Vec<PropertyStep>>) -> Self {
        Self(paths)
    }

    /// Returns true if a JSON Pointer into the arguments leads to one of them or into it.
    pub(super) fn contain(&self, pointer: &str) -> bool {
        let mut steps = pointer.split('/').skip(1);
        if steps.next() != Some(BODY) {
            return false;
        }
        let steps: Vec<String> = steps
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect();
        let leads_there = |path: &Vec<PropertyStep>| {
            let is_step = |(step, taken): (&PropertyStep, &String)| match step {
                PropertyStep::Member(name) => name == taken,
                PropertyStep::EachItem => taken.bytes().all(|byte| byte.is_ascii_digit()),
            };
            path.len() <= steps.len() && path.iter().zip(&steps).all(is_step)
        };
        self.0.iter().any(leads_there)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
