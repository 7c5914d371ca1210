(function_definition
  "private"? @context
  "fn" @context
  name: (identifier) @name
  parameters: (parameters) @context) @item

(source_file
  (const_declaration
    "const" @context
    name: (identifier) @name) @item)
