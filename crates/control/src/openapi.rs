//! The API's description in OpenAPI 3.1, from one table of endpoints and one of documents.
//!
//! `schema/openapi.json` is its output, checked in; tests compare it with this table, the table with the router, and
//! the documents with what the handlers really write.

use serde_json::{Map, Value, json};

mod documents;
mod endpoints;

use documents::{DOCUMENTS, Document};
use endpoints::{ENDPOINTS, Endpoint};

/// The description.
pub fn description() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let operation = endpoint.describe();
        if let Value::Object(methods) = paths.entry(endpoint.path).or_insert_with(|| json!({})) {
            methods.insert(endpoint.method.to_ascii_lowercase(), operation);
        }
    }
    let schemas: Map<String, Value> =
        DOCUMENTS.iter().map(|document| (document.name.to_owned(), document.describe())).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lazaret control API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Reading is open on the TCP address. Changing calls need the unix socket (root, lazaret's own \
                            user, control.users) or the token of control.token_file. Ids are one percent-encoded path \
                            segment. Errors are {\"error_msg\": text}. Readers must ignore keys they do not know.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

/// Every described path with its method, for comparison with the router.
pub fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
    ENDPOINTS.iter().map(|endpoint| (endpoint.method, endpoint.path))
}

/// The keys that a document is described to have; `None`: there is no such document.
pub fn keys(document: &str) -> Option<Vec<&'static str>> {
    let found = DOCUMENTS.iter().find(|known| known.name == document)?;
    Some(found.keys.iter().map(|(name, _, _)| *name).collect())
}

impl Endpoint {
    fn describe(&self) -> Value {
        let in_path = self
            .path
            .split(['{', '}'])
            .skip(1)
            .step_by(2)
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        let in_query = self.query.iter().map(|(name, kind, meaning)| {
            json!({"name": name, "in": "query", "required": false, "schema": schema(kind), "description": meaning})
        });
        let content = if self.answer.contains('/') {
            json!({self.answer: {"schema": {"type": "string"}}})
        } else {
            json!({"application/json": {"schema": schema(self.answer)}})
        };
        let mut responses = Map::new();
        responses.insert("200".to_owned(), json!({"description": "Done", "content": content}));
        for (status, meaning) in self.failures {
            let document = if self.answer == "Reload" && ["409", "422"].contains(status) { "Reload" } else { "Error" };
            let content = json!({"application/json": {"schema": schema(document)}});
            responses.insert((*status).to_owned(), json!({"description": meaning, "content": content}));
        }
        let mut operation = json!({
            "summary": self.summary,
            "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
            "responses": responses,
        });
        if let (Value::Object(operation), true) = (&mut operation, self.method == "POST") {
            operation.insert("security".to_owned(), json!([{}, {"token": []}]));
        }
        operation
    }
}

impl Document {
    fn describe(&self) -> Value {
        let properties: Map<String, Value> = self
            .keys
            .iter()
            .map(|(name, kind, meaning)| {
                let mut property = schema(kind);
                if let Value::Object(property) = &mut property {
                    property.insert("description".to_owned(), json!(meaning));
                }
                ((*name).to_owned(), property)
            })
            .collect();
        json!({"type": "object", "description": self.summary, "properties": properties})
    }
}

/// The schema of a type word: `[x]` is a list, a capital letter begins a document, anything else is JSON's own.
fn schema(word: &str) -> Value {
    if let Some(item) = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return json!({"type": "array", "items": schema(item)});
    }
    if word.starts_with(|first: char| first.is_ascii_uppercase()) {
        return json!({"$ref": format!("#/components/schemas/{word}")});
    }
    json!({"type": word})
}
