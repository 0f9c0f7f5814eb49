//! The arguments of a call against the input schema of its tool: valid, or repaired, or refused
//! with all that is wrong.

use serde::Deserialize;
use serde_json::Value;

use super::placement::{Placer, object};
use super::problems::{
    describe_body_problems, describe_format_mismatch, describe_lenient_problems, describe_problems,
};
use super::repair::{EmptyArgument, RepairNotes, repair_values, write_integers_plainly};
use super::validate::{ArgumentVerdict, LenientPlaces, Validator, open_body};
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::spec::Operation;

/// Checks for the arguments of a tool.
pub(crate) struct ArgumentChecks {
    pub(crate) schema: JsonObject,
    /// `None` if the schema cannot be compiled: then it judges nothing.
    validator: Option<Validator>,
}

/// Arguments that fit the input schema.
pub(crate) struct CheckedArguments {
    pub(crate) arguments: JsonObject,
    /// Arguments that do not match their `format`, in a sentence for the model.
    pub(crate) format_mismatch: Option<String>,
    /// Repairs of the arguments, in a sentence for the model.
    pub(crate) repairs: Option<String>,
    /// Parts of the body that do not fit its schema, in a sentence for the model. They are sent
    /// nevertheless.
    pub(crate) body_problems: Option<String>,
}

impl CheckedArguments {
    /// Arguments that nothing can be said about.
    pub(crate) fn unchecked(arguments: JsonObject) -> Self {
        Self {
            arguments,
            format_mismatch: None,
            repairs: None,
            body_problems: None,
        }
    }
}

impl ArgumentChecks {
    /// Compiles the input schema of a tool, which is given as JSON, and logs if that is not
    /// possible. `None` means that the schema cannot even be read.
    pub(crate) fn of_tool(name: &str, tool: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListedTool {
            input_schema: JsonObject,
        }
        let warn = |error: &String| {
            tracing::warn!(tool = %name, "the input schema cannot be checked: {error}");
        };
        let listed = serde_json::from_str(tool).map_err(|error| error.to_string());
        let ListedTool { input_schema } = listed.inspect_err(warn).ok()?;
        let input_schema = Value::Object(input_schema);
        Some(Self {
            validator: Validator::compile(&input_schema).inspect_err(warn).ok(),
            schema: object(input_schema),
        })
    }

    /// Checks the arguments of a tool, and repairs them if that makes them valid and only one
    /// reading fits. `operation` is the one that the tool calls, if it calls one. `empty` decides
    /// about an optional number that is given as an empty text, and `lenient` has the properties
    /// that are sent although they do not fit.
    ///
    /// # Errors
    /// [`CallError::Arguments`] with all that is wrong with them.
    pub(crate) fn check(
        &self,
        tool: &str,
        operation: Option<&Operation>,
        arguments: JsonObject,
        empty: EmptyArgument,
        lenient: Option<&LenientPlaces>,
    ) -> Result<CheckedArguments, CallError> {
        let given = match self.accept(arguments.into(), None, None) {
            Ok(checked) => return Ok(checked),
            Err(given) => object(given),
        };
        if let Some(checked) = operation
            .filter(|operation| operation.rules.takes_any_body())
            .and_then(|_| self.check_all_but_body(given.clone(), empty))
        {
            return Ok(checked);
        }
        let given = Value::Object(given);
        let problems =
            lenient.and_then(|places| describe_lenient_problems(&self.schema, &given, places));
        if problems.is_some() {
            return Ok(self.checked(given, ArgumentVerdict::Invalid, None, problems));
        }
        let given = object(given);
        // Types alone first: what they explain needs no other reading.
        let mut notes = RepairNotes::default();
        let mut repaired = given.clone();
        repair_values(&mut repaired, &self.schema, empty, &mut notes);
        let repaired = match self.accept(repaired.into(), notes.sentence(), lenient) {
            Ok(checked) => return Ok(checked),
            Err(repaired) => repaired,
        };
        let mut notes = RepairNotes::default();
        let placer = operation.and_then(|operation| Placer::new(operation, &self.schema));
        let placed = placer
            .as_ref()
            .and_then(|placer| placer.place_arguments(&given, empty, &mut notes));
        if let Some(mut placed) = placed {
            repair_values(&mut placed, &self.schema, empty, &mut notes);
            if let Ok(checked) = self.accept(placed.into(), notes.sentence(), None) {
                return Ok(checked);
            }
        }
        let judged = match placer.and_then(|placer| placer.gather_members(&given)) {
            Some(mut gathered) => {
                repair_values(&mut gathered, &self.schema, empty, &mut notes);
                gathered.into()
            }
            None => repaired,
        };
        let problems = describe_problems(tool, &self.schema, &judged);
        Err(CallError::Arguments(problems))
    }

    /// The arguments as they are sent, if they are valid, or if nothing but properties that a rule
    /// is lenient with does not fit; else as they were given.
    fn accept(
        &self,
        arguments: Value,
        repairs: Option<String>,
        lenient: Option<&LenientPlaces>,
    ) -> Result<CheckedArguments, Value> {
        let verdict = match &self.validator {
            Some(validator) => validator.judge(&arguments),
            None => ArgumentVerdict::Valid,
        };
        let is_valid = verdict != ArgumentVerdict::Invalid;
        let body_problems = lenient
            .filter(|_| !is_valid)
            .and_then(|places| describe_lenient_problems(&self.schema, &arguments, places));
        if !is_valid && body_problems.is_none() {
            return Err(arguments);
        }
        Ok(self.checked(arguments, verdict, repairs, body_problems))
    }

    /// The arguments with the body as it was given, if all others are valid or can be repaired.
    fn check_all_but_body(
        &self,
        mut arguments: JsonObject,
        empty: EmptyArgument,
    ) -> Option<CheckedArguments> {
        let mut schema = self.schema.clone();
        open_body(&mut schema);
        let mut notes = RepairNotes::default();
        repair_values(&mut arguments, &schema, empty, &mut notes);
        let validator = Validator::compile(&schema.into()).ok()?;
        let arguments = Value::Object(arguments);
        let verdict = validator.judge(&arguments);
        (verdict != ArgumentVerdict::Invalid).then(|| {
            let body_problems = describe_body_problems(&self.schema, &arguments);
            self.checked(arguments, verdict, notes.sentence(), body_problems)
        })
    }

    fn checked(
        &self,
        arguments: Value,
        verdict: ArgumentVerdict,
        repairs: Option<String>,
        body_problems: Option<String>,
    ) -> CheckedArguments {
        let has_mismatch = verdict == ArgumentVerdict::OtherFormat;
        let format_mismatch = has_mismatch
            .then(|| describe_format_mismatch(&self.schema, &arguments))
            .flatten();
        let mut arguments = object(arguments);
        write_integers_plainly(&mut arguments, &self.schema);
        CheckedArguments {
            arguments,
            format_mismatch,
            repairs,
            body_problems,
        }
    }
}
