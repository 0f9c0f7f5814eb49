//! The arguments of a call against the input schema of its tool: valid, or repaired, or refused
//! with all that is wrong.

use serde::Deserialize;
use serde_json::Value;

use super::placement::{gather_members, place_arguments};
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
        let validator = Validator::compile(&input_schema).inspect_err(warn).ok();
        match input_schema {
            Value::Object(schema) => Some(Self { schema, validator }),
            _ => None,
        }
    }

    fn judge(&self, arguments: &Value) -> ArgumentVerdict {
        let validator = self.validator.as_ref();
        validator.map_or(ArgumentVerdict::Valid, |validator| {
            validator.judge(arguments)
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
        let given = Value::Object(arguments);
        let verdict = self.judge(&given);
        if verdict != ArgumentVerdict::Invalid {
            return Ok(self.checked(given, verdict, None));
        }
        let Value::Object(given) = given else {
            return Ok(CheckedArguments::unchecked(JsonObject::new()));
        };
        if let Some(checked) = operation
            .filter(|operation| operation.rules.takes_any_body())
            .and_then(|_| self.check_all_but_body(&given, empty))
        {
            return Ok(checked);
        }
        let given = Value::Object(given);
        if let Some(checked) = self.check_leniently(&given, lenient, None) {
            return Ok(checked);
        }
        let Value::Object(given) = given else {
            return Ok(CheckedArguments::unchecked(JsonObject::new()));
        };
        // Types alone first: what they explain needs no other reading.
        let mut notes = RepairNotes::default();
        let mut repaired = given.clone();
        repair_values(&mut repaired, &self.schema, empty, &mut notes);
        let repaired = Value::Object(repaired);
        let verdict = self.judge(&repaired);
        if verdict != ArgumentVerdict::Invalid {
            return Ok(self.checked(repaired, verdict, notes.sentence()));
        }
        if let Some(checked) = self.check_leniently(&repaired, lenient, notes.sentence()) {
            return Ok(checked);
        }
        let mut notes = RepairNotes::default();
        let is_valid = |name: &str, value: &Value| self.is_valid_alone(name, value);
        let placed = operation.and_then(|operation| {
            place_arguments(
                &given,
                operation,
                &self.schema,
                empty,
                &is_valid,
                &mut notes,
            )
        });
        if let Some(mut placed) = placed {
            repair_values(&mut placed, &self.schema, empty, &mut notes);
            let placed = Value::Object(placed);
            let verdict = self.judge(&placed);
            if verdict != ArgumentVerdict::Invalid {
                return Ok(self.checked(placed, verdict, notes.sentence()));
            }
        }
        let gathered = operation
            .and_then(|operation| gather_members(&given, operation, &self.schema, &is_valid));
        let judged = match gathered {
            Some(mut gathered) => {
                repair_values(&mut gathered, &self.schema, empty, &mut notes);
                Value::Object(gathered)
            }
            None => repaired,
        };
        Err(CallError::Arguments(describe_problems(
            tool,
            &self.schema,
            &judged,
        )))
    }

    /// The arguments with the body as it was given, if all others are valid or can be repaired.
    fn check_all_but_body(
        &self,
        given: &JsonObject,
        empty: EmptyArgument,
    ) -> Option<CheckedArguments> {
        let mut schema = self.schema.clone();
        open_body(&mut schema);
        let mut notes = RepairNotes::default();
        let mut repaired = given.clone();
        repair_values(&mut repaired, &schema, empty, &mut notes);
        let validator = Validator::compile(&Value::Object(schema)).ok()?;
        let repaired = Value::Object(repaired);
        let verdict = validator.judge(&repaired);
        if verdict == ArgumentVerdict::Invalid {
            return None;
        }
        let body_problems = describe_body_problems(&self.schema, &repaired);
        Some(CheckedArguments {
            body_problems,
            ..self.checked(repaired, verdict, notes.sentence())
        })
    }

    /// The arguments, if nothing but properties that a rule is lenient with does not fit.
    fn check_leniently(
        &self,
        arguments: &Value,
        lenient: Option<&LenientPlaces>,
        repairs: Option<String>,
    ) -> Option<CheckedArguments> {
        let body_problems = describe_lenient_problems(&self.schema, arguments, lenient?)?;
        Some(CheckedArguments {
            body_problems: Some(body_problems),
            ..self.checked(arguments.clone(), ArgumentVerdict::Valid, repairs)
        })
    }

    fn checked(
        &self,
        arguments: Value,
        verdict: ArgumentVerdict,
        repairs: Option<String>,
    ) -> CheckedArguments {
        let has_mismatch = verdict == ArgumentVerdict::OtherFormat;
        let format_mismatch = has_mismatch
            .then(|| describe_format_mismatch(&self.schema, &arguments))
            .flatten();
        let mut arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => JsonObject::new(),
        };
        write_integers_plainly(&mut arguments, &self.schema);
        CheckedArguments {
            arguments,
            format_mismatch,
            repairs,
            body_problems: None,
        }
    }

    /// Returns true if one argument is valid independent of the others.
    fn is_valid_alone(&self, name: &str, value: &Value) -> bool {
        let Some(property) = self
            .schema
            .get("properties")
            .and_then(|properties| properties.get(name))
        else {
            return false;
        };
        let mut schema = JsonObject::from_iter([(
            "properties".to_owned(),
            Value::Object(JsonObject::from_iter([(name.to_owned(), property.clone())])),
        )]);
        schema.extend(
            self.schema
                .get("$defs")
                .map(|definitions| ("$defs".to_owned(), definitions.clone())),
        );
        let arguments = Value::Object(JsonObject::from_iter([(name.to_owned(), value.clone())]));
        Validator::compile(&Value::Object(schema))
            .is_ok_and(|validator| validator.accepts(&arguments))
    }
}
