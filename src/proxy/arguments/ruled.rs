//! Arguments that rules of the operator set: what no call gives is put in after the model's
//! arguments were checked against what the model was shown, and then the whole is checked against
//! the document's schema.

use std::sync::{Arc, OnceLock};

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::placement::with_wire_names;
use super::problems::describe_lenient_problems;
use super::repair::repair_value;
use super::validate::{
    LenientPlaces, SchemaValidator, compile_alone, compile_schema, open_body, schema_of,
};
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::json::JsonObject;
use crate::proxy::request::fixed::is_read_as;
use crate::proxy::tenants::MASK;
use crate::spec::Operation;
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::rules::{ArgumentTarget, PropertyStep, RuledProperty, ValueSource};
use crate::spec::schema::NewNames;

/// Rules for the arguments of one operation.
pub(crate) struct ArgumentRules {
    /// The document's input schema, with all arguments.
    schema: Arc<JsonObject>,
    /// The names of properties that had to be changed in it.
    names: Option<Arc<NewNames>>,
    /// Compiled on first use.
    validator: OnceLock<Option<SchemaValidator>>,
    takes_any_body: bool,
    parameters: Vec<FixedArgument>,
    properties: Vec<RuledBodyProperty>,
    /// The properties that rules are lenient with, by the names that the model gives.
    pub(crate) lenient: LenientPlaces,
    /// The same by the names of the document.
    lenient_in_document: LenientPlaces,
}

/// An argument that no call gives.
struct FixedArgument {
    key: String,
    label: String,
    value: FixedValue,
}

/// A property of the body that a rule is about.
struct RuledBodyProperty {
    path: Vec<PropertyStep>,
    label: String,
    /// The name under which the model gives it.
    given_as: Option<String>,
    setting: PropertySetting,
    is_lenient: bool,
}

enum PropertySetting {
    /// A call may give it.
    Free,
    /// A call may give it, and else it is this.
    Default(Value),
    /// Calls do not give it.
    Closed(FixedValue),
}

/// The value of an argument that no call gives.
enum FixedValue {
    /// No value is sent.
    Absent,
    /// Known at start.
    Known { value: Value, is_secret: bool },
    /// Value of the calling client, converted by this schema.
    OfClient { source: ValueSource, schema: Value },
}

impl ArgumentRules {
    /// Makes the rules; `schema` is the document's input schema, with all arguments, in which
    /// properties have `names`.
    ///
    /// # Errors
    /// A sentence for each value that the document's schema refuses.
    pub(crate) fn new(
        operation: &Operation,
        schema: Arc<JsonObject>,
        names: Option<Arc<NewNames>>,
        properties: Vec<RuledProperty>,
    ) -> Result<Self, Vec<String>> {
        let mut reader = ValueReader {
            operation,
            root: &schema,
            problems: Vec::new(),
        };
        for rule in &operation.rules.arguments {
            if let ArgumentTarget::Parameter(location, name) = &rule.target {
                let offered = operation
                    .parameters
                    .iter()
                    .find(|parameter| parameter.is(*location, name));
                let values = rule.values.iter().flatten().chain(&rule.default);
                let property = offered
                    .map(|parameter| reader.property(&parameter.key))
                    .unwrap_or_default();
                values.for_each(|value| reader.check(&rule.target, value, &property));
            }
        }
        let fixed = operation.rules.fixed.iter().map(|fixed| {
            let target =
                ArgumentTarget::Parameter(fixed.parameter.location, fixed.parameter.name.clone());
            let property = reader.property(&fixed.parameter.key);
            FixedArgument {
                key: fixed.parameter.key.clone(),
                value: reader.read(&target, fixed.source.as_ref(), &property),
                label: target.to_string(),
            }
        });
        let parameters = fixed.collect();
        let mut ruled: Vec<RuledBodyProperty> = Vec::new();
        for RuledProperty { rule, path, schema } in properties {
            rule.values
                .iter()
                .flatten()
                .for_each(|value| reader.check(&rule.target, value, &schema));
            let setting = if rule.is_closed() {
                let source = rule.closed_source();
                PropertySetting::Closed(reader.read(&rule.target, source.as_ref(), &schema))
            } else if let Some(default) = &rule.default {
                reader.check(&rule.target, default, &schema);
                PropertySetting::Default(default.clone())
            } else {
                PropertySetting::Free
            };
            ruled.push(RuledBodyProperty {
                label: rule.target.to_string(),
                is_lenient: rule.lenient == Some(true),
                given_as: rule.name,
                path,
                setting,
            });
        }
        // What an object is called comes before what is in it.
        ruled.sort_by_key(|property| property.path.len());
        if !reader.problems.is_empty() {
            return Err(reader.problems);
        }
        Ok(Self {
            schema,
            names,
            validator: OnceLock::new(),
            takes_any_body: operation.rules.takes_any_body(),
            parameters,
            lenient: LenientPlaces(lenient_paths(&ruled, true)),
            lenient_in_document: LenientPlaces(lenient_paths(&ruled, false)),
            properties: ruled,
        })
    }

    /// The arguments of a request: those of the model, under the names on the wire, and those that
    /// no call gives; and the client's values in them, which must not come back in a reply. The
    /// schema judges them if they are `all`: those of a handle lack what only the request of its
    /// call needed.
    ///
    /// # Errors
    /// [`CallError::InvalidRequest`] if the model gives an argument that it may not,
    /// [`CallError::Setting`] if a value that no call gives is missing or does not fit.
    pub(crate) fn complete(
        &self,
        tool: &str,
        mut arguments: JsonObject,
        are_all: bool,
        caller: Option<&Caller>,
    ) -> Result<(JsonObject, Vec<String>), CallError> {
        let mut secrets = Vec::new();
        let mut body = arguments.remove(BODY);
        for property in &self.properties {
            if let Some(body) = &mut body {
                property.restore(body, &property.path, "")?;
            }
        }
        for property in &self.properties {
            let (value, replaces) = match &property.setting {
                PropertySetting::Free => continue,
                PropertySetting::Default(value) => (value.clone(), false),
                PropertySetting::Closed(value) => {
                    match self.resolve(value, &property.label, caller, &mut secrets)? {
                        Some(value) => (value, true),
                        None => continue,
                    }
                }
            };
            let is_item = property.path.contains(&PropertyStep::EachItem);
            if body.is_none() && is_item {
                continue;
            }
            let body = body.get_or_insert_with(|| json!({}));
            set(body, &property.path, &value, replaces, &format!("/{BODY}"))?;
        }
        arguments.extend(body.map(|body| (BODY.to_owned(), body)));
        for FixedArgument { key, label, value } in &self.parameters {
            arguments.remove(key);
            if let Some(value) = self.resolve(value, label, caller, &mut secrets)? {
                arguments.insert(key.clone(), value);
            }
        }
        // The mask of a secret fits no schema.
        if are_all && caller.is_some() && !self.is_valid(tool, &arguments) {
            return Err(CallError::Setting(
                "the arguments do not go together with a setting of this server; nothing was sent"
                    .into(),
            ));
        }
        let arguments = with_wire_names(arguments, self.names.as_deref(), &self.schema);
        Ok((arguments, secrets))
    }

    fn is_valid(&self, tool: &str, arguments: &JsonObject) -> bool {
        let compile = || {
            let mut schema = self.schema.as_ref().clone();
            if self.takes_any_body {
                open_body(&mut schema);
            }
            compile_schema(&schema.into(), false).ok()
        };
        let Some(validator) = self.validator.get_or_init(compile) else {
            return true;
        };
        let arguments = Value::Object(arguments.clone());
        let is_sent = || {
            describe_lenient_problems(&self.schema, &arguments, &self.lenient_in_document).is_some()
        };
        if validator.is_valid(&arguments) || is_sent() {
            return true;
        }
        let parameters = self.parameters.iter().map(|parameter| &*parameter.label);
        let properties = self.properties.iter().map(|property| &*property.label);
        let labels: Vec<&str> = parameters.chain(properties).collect();
        tracing::warn!(%tool, "the arguments of a call do not fit the document's schema once those of `overrides` are in: {}", labels.join(", "));
        false
    }

    fn resolve(
        &self,
        value: &FixedValue,
        label: &str,
        caller: Option<&Caller>,
        secrets: &mut Vec<String>,
    ) -> Result<Option<Value>, CallError> {
        let (source, schema, caller) = match (value, caller) {
            (FixedValue::Absent, _) => return Ok(None),
            (FixedValue::Known { value, is_secret }, caller) if caller.is_some() || !is_secret => {
                return Ok(Some(value.clone()));
            }
            (FixedValue::OfClient { source, schema }, Some(caller)) => (source, schema, caller),
            (FixedValue::Known { .. } | FixedValue::OfClient { .. }, _) => {
                return Ok(Some(MASK.into()));
            }
        };
        let text = source.client_text(caller)?;
        let value = convert(&text, schema, &self.schema).ok_or_else(|| {
            let source = source.describe();
            tracing::warn!(
                argument = label,
                "a value {source} does not fit the document's schema"
            );
            CallError::Setting(format!(
                "nothing was sent, because the value {source} is not one that the API takes"
            ))
        })?;
        secrets.push(text);
        Ok(Some(value))
    }
}

/// The paths of the properties that rules are lenient with, with the names `as_given` by the model
/// or with those of the document.
fn lenient_paths(properties: &[RuledBodyProperty], as_given: bool) -> Vec<Vec<PropertyStep>> {
    let given_as = |path: &[PropertyStep]| {
        let property = properties
            .iter()
            .find(|property| as_given && property.path == path)?;
        property.given_as.clone().map(PropertyStep::Member)
    };
    let lenient = properties.iter().filter(|property| property.is_lenient);
    let renamed = lenient.map(|RuledBodyProperty { path, .. }| {
        let steps = path.iter().enumerate();
        let given = |index| path.get(..=index).and_then(given_as);
        let steps = steps.map(|(index, step)| given(index).unwrap_or_else(|| step.clone()));
        steps.collect()
    });
    renamed.collect()
}

impl RuledBodyProperty {
    /// Gives the property its own name in every object that holds it. `rest` of the path is still
    /// to go; `place` is the JSON Pointer of `value` in the body.
    fn restore(
        &self,
        value: &mut Value,
        rest: &[PropertyStep],
        place: &str,
    ) -> Result<(), CallError> {
        match (rest, value) {
            ([PropertyStep::Member(name), rest @ ..], Value::Object(members)) => {
                let is_closed = matches!(self.setting, PropertySetting::Closed(_));
                let is_renamed = |new: &&String| rest.is_empty() && !is_closed && *new != name;
                let renamed = self.given_as.as_ref().filter(is_renamed);
                let is_taken = |key: &&String| {
                    if *key == name {
                        rest.is_empty() && (is_closed || renamed.is_some())
                    } else {
                        is_closed && is_read_as(key, name)
                    }
                };
                if let Some(taken) = members.keys().find(is_taken) {
                    return Err(CallError::invalid_request(
                        &format!("/{BODY}{place}/{taken}"),
                        "is not an argument of this tool; nothing was sent",
                    ));
                }
                if let Some(value) = renamed.and_then(|new| members.shift_remove(new)) {
                    members.insert(name.clone(), value);
                }
                if let Some(member) = members.get_mut(name) {
                    self.restore(member, rest, &format!("{place}/{name}"))?;
                }
            }
            ([PropertyStep::EachItem, rest @ ..], Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.restore(item, rest, &format!("{place}/{index}"))?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Sets a value at the end of a path: everywhere if it `replaces`, else only where there is none.
/// Objects on the way that are missing are made for a value that replaces; lists are not.
fn set(
    target: &mut Value,
    path: &[PropertyStep],
    value: &Value,
    replaces: bool,
    place: &str,
) -> Result<(), CallError> {
    let of_another_kind = |kind: &str| {
        let problem = format!(
            "must be {kind} here, because this server sets a value in it; nothing was sent"
        );
        CallError::invalid_request(place, problem)
    };
    match path {
        [PropertyStep::Member(name), rest @ ..] => {
            let Value::Object(members) = target else {
                return Err(of_another_kind("an object"));
            };
            let is_missing = !members.contains_key(name);
            match rest {
                [] if replaces || is_missing => {
                    members.insert(name.clone(), value.clone());
                }
                [] => {}
                [PropertyStep::EachItem, ..] if is_missing => {}
                _ if is_missing && !replaces => {}
                _ => {
                    let member = members.entry(name).or_insert_with(|| json!({}));
                    set(member, rest, value, replaces, &format!("{place}/{name}"))?;
                }
            }
        }
        [PropertyStep::EachItem, rest @ ..] => {
            let Value::Array(items) = target else {
                return Err(of_another_kind("a list"));
            };
            for (index, item) in items.iter_mut().enumerate() {
                set(item, rest, value, replaces, &format!("{place}/{index}"))?;
            }
        }
        [] => {}
    }
    Ok(())
}

/// A text as a value that a schema accepts: as it is, or read as a number, a boolean or a list.
fn convert(text: &str, schema: &Value, root: &JsonObject) -> Option<Value> {
    let validator = compile_alone(schema, root).ok()?;
    let is_valid = |value: &Value| validator.is_valid(value);
    let mut value = Value::String(text.to_owned());
    if !is_valid(&value) {
        repair_value(&mut value, schema, root);
    }
    Some(value).filter(is_valid)
}

/// Reads the values of rules by the document's schema.
struct ValueReader<'r> {
    operation: &'r Operation,
    root: &'r JsonObject,
    problems: Vec<String>,
}

impl ValueReader<'_> {
    /// The schema of an argument.
    fn property(&self, key: &str) -> Value {
        let schema = schema_of(self.root, key);
        schema.cloned().unwrap_or(Value::Bool(true))
    }

    fn refuse(&mut self, target: &ArgumentTarget, why: &str) {
        self.problems.push(format!(
            "`overrides`: `{target}` of {} {why}",
            self.operation.label()
        ));
    }

    fn check(&mut self, target: &ArgumentTarget, value: &Value, schema: &Value) {
        let validator = compile_alone(schema, self.root);
        if validator.is_ok_and(|validator| !validator.is_valid(value)) {
            self.refuse(
                target,
                "is set to a value that the document's schema does not accept",
            );
        }
    }

    fn read(
        &mut self,
        target: &ArgumentTarget,
        source: Option<&ValueSource>,
        schema: &Value,
    ) -> FixedValue {
        match source {
            None => FixedValue::Absent,
            Some(ValueSource::Literal(value)) => {
                self.check(target, value, schema);
                FixedValue::Known {
                    value: value.clone(),
                    is_secret: false,
                }
            }
            Some(ValueSource::Secret { value: text, .. }) => {
                let value = convert(text.expose_secret(), schema, self.root);
                if value.is_none() {
                    self.refuse(
                        target,
                        "gets a value from the environment that the document's schema does not accept",
                    );
                }
                FixedValue::Known {
                    value: value.unwrap_or_default(),
                    is_secret: true,
                }
            }
            Some(source) => FixedValue::OfClient {
                source: source.clone(),
                schema: schema.clone(),
            },
        }
    }
}
