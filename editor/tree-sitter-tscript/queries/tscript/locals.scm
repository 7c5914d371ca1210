; Where names are declared and used.

[
  (function_definition)
  (closure)
  (block)
  (for_expression)
  (catch_clause)
  (interpolation)
] @local.scope

(let_declaration name: (identifier) @local.definition.var)
(const_declaration name: (identifier) @local.definition.constant)
(array_pattern (identifier) @local.definition.var)
(map_pattern (identifier) @local.definition.var)
(field_pattern value: (identifier) @local.definition.var)
(rest_pattern (identifier) @local.definition.var)
(pair_pattern (identifier) @local.definition.var)
(for_expression name: (identifier) @local.definition.var)
(catch_clause name: (identifier) @local.definition.var)
(parameters (identifier) @local.definition.parameter)
(closure_parameters (identifier) @local.definition.parameter)
(function_definition name: (identifier) @local.definition.function)
(import_statement alias: (identifier) @local.definition.import)

(identifier) @local.reference
