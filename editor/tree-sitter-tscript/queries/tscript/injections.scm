; Other languages inside of texts.

; `cuda::kernel(source, name)`
((call
  function: (scoped_identifier path: (identifier) @_module name: (identifier) @_function)
  arguments: (arguments . (_ (string_content) @injection.content)))
  (#eq? @_module "cuda")
  (#eq? @_function "kernel")
  (#set! injection.combined)
  (#set! injection.language "cuda"))

; `re::compile(pattern)` and the other functions of `re`
((call
  function: (scoped_identifier path: (identifier) @_module)
  arguments: (arguments . (_ (string_content) @injection.content)))
  (#eq? @_module "re")
  (#set! injection.language "regex"))

([(line_comment) (block_comment) (doc_comment)] @injection.content
  (#set! injection.language "comment"))
