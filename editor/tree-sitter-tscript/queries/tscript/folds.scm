; What can be folded.

[
  (block)
  (switch_body)
  (map)
  (array)
  (arguments)
  (template)
  (block_comment)
] @fold

(doc_comment)+ @fold
(line_comment)+ @fold
(import_statement)+ @fold
